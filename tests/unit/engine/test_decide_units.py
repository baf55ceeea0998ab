"""Units that end one by one, wait for slots and approvals, or are left out."""

from __future__ import annotations

from msgspec import structs

from tests.support.builders import make_deployment, make_plan_from, make_unit, make_unit_id
from tests.support.decision_run import START, DecisionRun
from tests.support.ordered_manifests import a_hook, a_thing, a_unit_of, no_budget
from tests.support.recorded_wording import RecordedWording
from tidegate.engine.messages import (
    ApprovalGranted,
    DeleteHooks,
    Failure,
    HooksDeleted,
    StopRequested,
)
from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.k8s.verdict import Health
from tidegate.model.plans.manifest import Manifests, Phase
from tidegate.model.plans.plan import Barrier, ConcurrencyLimit, Plan
from tidegate.model.rollouts.event import Event, EventType, StepState
from tidegate.model.times import SECOND, Ms
from tidegate.plan.build.build import build_plan

FAULT = Failure("Invalid", "spec.replicas: -1", final=True)
TWO = make_plan_from(make_deployment("db"), make_deployment("web"))


def units(*names: str, after: str = "") -> list[Manifests]:
    """Each with a Deployment of its name; the last one after those of `after`."""
    made = [make_unit(make_deployment(name), name=name) for name in names]
    if after:
        waits = tuple(after.split())
        made[-1] = make_unit(make_deployment(names[-1]), name=names[-1], after=waits)
    return made


def grouped(*names: str, limit: int, after: str = "") -> Plan:
    """Units of one group, so many of them at once; the last one after those of `after`."""
    members = [
        structs.replace(unit, unit=structs.replace(unit.unit, concurrency_group="canary"))
        for unit in units(*names, after=after)
    ]
    return build_plan(
        members,
        concurrency_limits=(ConcurrencyLimit("canary", limit),),
        readiness_timeout=no_budget,
    )


def ended(play: DecisionRun) -> list[tuple[str, str]]:
    """How units ended, in their order, and then the rollout."""
    messages = (
        event
        for event in play.events
        if event.type in {EventType.UNIT_FINISHED, EventType.ROLLOUT_FINISHED}
    )
    return [(str(item.unit or ""), item.reason) for item in messages]


def started(play: DecisionRun) -> list[str]:
    return [step.partition("/")[0] for *_, step in play.moments(EventType.STEP_CHECKING)]


def waits(play: DecisionRun) -> list[Event]:
    return [event for event in play.events if event.type is EventType.STEP_WAITING]


def behind_a_barrier(barrier: Barrier) -> Plan:
    first, second = TWO.steps
    return structs.replace(TWO, steps=(first, structs.replace(second, barrier=barrier)))


def test_each_unit_ends_when_it_is_at_rest_and_the_rollout_with_the_last() -> None:
    play = DecisionRun(make_plan_from(*units("db", "web")))

    play.judge("web", Health.HEALTHY)
    before = ended(play)
    play.judge("db", Health.HEALTHY)

    assert before == [("web", "passed")]
    assert ended(play) == [("web", "passed"), ("db", "passed"), ("", "passed")]


def test_a_unit_without_objects_ends_too() -> None:
    play = DecisionRun(make_plan_from(make_unit(name="empty"), *units("web")))

    play.judge("web", Health.HEALTHY)

    assert ended(play) == [("empty", "passed"), ("web", "passed"), ("", "passed")]


def test_a_failure_ends_its_unit_and_skips_its_dependents() -> None:
    play = DecisionRun(make_plan_from(*units("db", "mail", "web", after="db")))

    play.judge("db", Health.DEGRADED, final=True)
    play.judge("mail", Health.HEALTHY)

    assert ended(play) == [
        ("db", "failed"),
        ("web", "skipped"),
        ("mail", "passed"),
        ("", "failed"),
    ]


def test_hooks_are_collected_when_their_unit_is_at_rest() -> None:
    seed = a_hook("Pod", "seed", Phase.SYNC)
    hooked = a_unit_of(seed, name="db")
    play = DecisionRun(build_plan([hooked, *units("web")], readiness_timeout=no_budget))

    play.judge("seed", Health.HEALTHY)
    collects = [command for command in play.commands if isinstance(command, DeleteHooks)]
    before = ended(play)
    play.receive(HooksDeleted(make_unit_id("db"), (ClusterRef("", seed.ref),)))

    assert collects == [DeleteHooks(make_unit_id("db"), failed=False)]
    assert before == []
    assert ended(play) == [("db", "passed")]
    (deleted,) = [event for event in play.events if event.type is EventType.HOOK_DELETED]
    assert (deleted.unit, deleted.ref) == (make_unit_id("db"), seed.ref)


def test_concurrency_limits_hold() -> None:
    play = DecisionRun(grouped("a", "b", "c", "d", limit=2))
    first = started(play)

    play.judge("b", Health.HEALTHY)
    second = started(play)
    play.judge("a", Health.HEALTHY)

    assert (first, second, started(play)) == (["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"])


def test_a_unit_in_progress_before_the_rollout_counts_for_the_limit() -> None:
    play = DecisionRun(grouped("a", "b", limit=1), under_way=(make_unit_id("b"),))
    first = started(play)

    play.judge("b", Health.HEALTHY)

    assert (first, started(play)) == (["b"], ["b", "a"])


def test_a_waiting_unit_leaves_its_slot_to_its_dependency() -> None:
    play = DecisionRun(grouped("a", "b", limit=1, after="a"), under_way=(make_unit_id("b"),))

    play.judge("a", Health.HEALTHY)
    play.judge("b", Health.HEALTHY)

    assert ended(play) == [("a", "passed"), ("b", "passed"), ("", "passed")]


def test_a_wait_for_a_slot_is_reported_once(wording: RecordedWording) -> None:
    play = DecisionRun(grouped("a", "b", "c", limit=1))

    result = waits(play)

    assert [(wait.step, wait.reason) for wait in result] == [
        ("b/sync/0", "ConcurrencyLimit"),
        ("c/sync/0", "ConcurrencyLimit"),
    ]
    wording(wait.message for wait in result)
    play.judge("a", Health.HEALTHY)
    assert len(waits(play)) == 2


def test_a_unit_keeps_its_slot_for_all_its_steps_and_for_good_when_it_failed() -> None:
    long = make_unit(make_deployment("a"), make_deployment("b"), name="long")
    members = [
        structs.replace(item, unit=structs.replace(item.unit, concurrency_group="canary"))
        for item in (long, *units("short"))
    ]
    play = DecisionRun(
        build_plan(
            members,
            concurrency_limits=(ConcurrencyLimit("canary", 1),),
            readiness_timeout=no_budget,
        )
    )

    play.judge("a", Health.HEALTHY)
    between = started(play)
    play.judge("b", Health.DEGRADED, final=True)

    assert between == ["long", "long"]
    assert started(play) == ["long", "long"]
    assert ended(play) == [("long", "failed"), ("short", "skipped"), ("", "failed")]


def test_units_of_other_groups_are_not_limited() -> None:
    members = [
        structs.replace(item, unit=structs.replace(item.unit, concurrency_group=group))
        for item, group in zip(units("a", "b", "c"), ("canary", "canary", "rest"), strict=True)
    ]
    play = DecisionRun(
        build_plan(
            members,
            concurrency_limits=(ConcurrencyLimit("canary", 1),),
            readiness_timeout=no_budget,
        )
    )

    assert started(play) == ["a", "c"]


def test_with_a_limit_of_zero_each_unit_waits_for_approval(wording: RecordedWording) -> None:
    play = DecisionRun(grouped("a", "b", limit=0), due=(make_unit_id("a"), make_unit_id("b")))
    before, result = started(play), waits(play)

    play.receive(ApprovalGranted(unit=make_unit_id("b")))
    play.judge("b", Health.HEALTHY)

    assert before == []
    assert {item.reason for item in result} == {"Approval"}
    wording({item.message for item in result})
    assert started(play) == ["b"]
    assert ended(play) == [("b", "passed")]


def test_a_step_after_a_barrier_starts_when_it_is_approved() -> None:
    play = DecisionRun(behind_a_barrier(Barrier("Approval", "somebody must look")))
    play.judge("db", Health.HEALTHY)
    play.wait(3_600)
    before = play.states["shop/sync/1"]

    play.receive(ApprovalGranted("shop/sync/1"))

    (wait,) = waits(play)
    assert (wait.step, wait.reason, wait.message, wait.until) == (
        "shop/sync/1",
        "Approval",
        "somebody must look",
        0,
    )
    assert before is StepState.WAITING
    assert play.starts("shop/sync/1") == [3_600.0]


def test_an_early_approval_is_remembered() -> None:
    play = DecisionRun(behind_a_barrier(Barrier("Approval", "somebody must look")))

    play.receive(ApprovalGranted("shop/sync/1"))
    before = play.starts("shop/sync/1")
    play.judge("db", Health.HEALTHY)

    assert before == []
    assert play.starts("shop/sync/1") == [0.0]
    assert waits(play) == []


def test_a_barrier_with_a_time_opens_then() -> None:
    until = Ms(START + 60 * SECOND)
    play = DecisionRun(behind_a_barrier(Barrier("Window", "not before nine", until)))
    play.judge("db", Health.HEALTHY)

    play.wait(120)

    assert [wait.until for wait in waits(play)] == [until]
    assert play.starts("shop/sync/1") == [60.0]


def test_a_stopped_unit_does_not_stop_the_others() -> None:
    play = DecisionRun(make_plan_from(*units("db", "mail", "web", after="db")))

    play.receive(StopRequested("somebody wants it so", unit=make_unit_id("db")))
    before = play.states
    play.judge("mail", Health.HEALTHY)

    assert before == {
        "db/sync/0": StepState.SUPERSEDED,
        "mail/sync/0": StepState.GATING,
        "web/sync/0": StepState.SKIPPED,
    }
    assert ended(play) == [
        ("db", "stopped"),
        ("web", "skipped"),
        ("mail", "passed"),
        ("", "stopped"),
    ]
    assert play.events[-1].message == "somebody wants it so"


def test_a_unit_that_is_stopped_waits_for_the_writes_that_are_under_way() -> None:
    play = DecisionRun(make_plan_from(*units("db", "web")), slow=("db",))

    play.receive(StopRequested("enough", unit=make_unit_id("db")))
    before = ended(play)
    play.wrote("db")

    assert before == []
    assert ended(play) == [("db", "stopped")]


def test_a_unit_that_ended_already_cannot_be_stopped() -> None:
    play = DecisionRun(make_plan_from(*units("db", "web")))
    play.judge("db", Health.HEALTHY)

    play.receive(StopRequested("enough", unit=make_unit_id("db")))
    play.judge("web", Health.HEALTHY)

    assert ended(play) == [("db", "passed"), ("web", "passed"), ("", "passed")]


def test_an_excluded_unit_fails_with_its_error_and_the_others_start() -> None:
    play = DecisionRun(
        make_plan_from(*units("db", "mail", "web", after="db")),
        left_out={make_unit_id("db"): FAULT},
    )

    play.judge("mail", Health.HEALTHY)

    (failure,) = [event for event in play.events if event.type is EventType.STEP_FAILED]
    assert (failure.step, failure.reason, failure.message) == (
        "db/sync/0",
        "Invalid",
        "spec.replicas: -1",
    )
    assert started(play) == ["mail"]
    assert ended(play) == [
        ("db", "failed"),
        ("web", "skipped"),
        ("mail", "passed"),
        ("", "failed"),
    ]


def test_nothing_of_a_unit_that_is_left_out_is_run_for_its_failure() -> None:
    unit = a_unit_of(
        a_thing("Pod", "a"),
        a_thing("Pod", "b", wave=1),
        a_hook("Pod", "sorry", Phase.SYNC_FAIL),
        name="db",
    )
    play = DecisionRun(
        build_plan([unit], readiness_timeout=no_budget), left_out={make_unit_id("db"): FAULT}
    )

    assert started(play) == []
    assert play.states == {
        "db/sync/0": StepState.FAILED,
        "db/sync/1": StepState.SKIPPED,
        "db/syncfail/0": StepState.SKIPPED,
    }
