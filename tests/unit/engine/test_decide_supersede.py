"""What a newer plan keeps of the one that is under way."""

from __future__ import annotations

from msgspec import structs

from tests.support.builders import make_deployment, make_plan_from, make_unit, make_unit_id
from tests.support.decision_run import DecisionRun
from tidegate.engine.messages import Expand, PlanSuperseded
from tidegate.model.k8s.verdict import Health
from tidegate.model.plans.plan import Plan, PlanFragment, Step, digest_step
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.units.semantics import ARGOCD

DB, WEB, CRY = "shop/sync/0", "shop/sync/1", "cry/sync/0"
TWO_WAVES = make_plan_from(make_deployment("db"), make_deployment("web"))


def a_rescue() -> Step:
    """A step of the same unit that has its turn when another failed."""
    made = make_plan_from(make_deployment("cry")).steps[0]
    return structs.replace(made, id=CRY, only_on_failure=True)


def with_rescue(plan: Plan) -> Plan:
    steps = (*plan.steps, a_rescue())
    return Plan.from_fragment(PlanFragment(units=plan.units, steps=steps, edges=plan.edges))


def test_an_unchanged_step_continues() -> None:
    play = DecisionRun(TWO_WAVES)
    play.judge("db", Health.HEALTHY)

    play.supersede(
        make_plan_from(make_deployment("db"), make_deployment("web"), make_deployment("mail"))
    )
    play.judge("web", Health.HEALTHY)

    assert play.starts(DB) == [0.0]
    assert play.starts(WEB) == [0.0]
    assert play.states["shop/sync/2"] is StepState.GATING


def test_a_changed_step_and_all_after_it_start_again() -> None:
    play = DecisionRun(TWO_WAVES)
    play.judge("db", Health.HEALTHY)

    play.wait(3)
    play.supersede(make_plan_from(make_deployment("db", image="app:2"), make_deployment("web")))

    assert play.starts(DB) == [0.0, 3.0]
    assert play.states[WEB] is StepState.WAITING


def test_a_newer_plan_waits_for_the_writes_that_are_under_way() -> None:
    play = DecisionRun(TWO_WAVES, slow=("db",))

    play.supersede(make_plan_from(make_deployment("db", image="app:2")))
    before = play.moments(EventType.ROLLOUT_SUPERSEDED)
    play.wrote("db")

    assert before == []
    assert [result for _, result, _ in play.moments(EventType.ROLLOUT_SUPERSEDED)] == [
        "rollout.superseded"
    ]


def test_nothing_starts_or_ends_during_preflight_of_a_newer_plan() -> None:
    play = DecisionRun(TWO_WAVES)

    play.receive(PlanSuperseded(None))
    play.judge("db", Health.HEALTHY)
    play.wait(60)

    assert play.states == {DB: StepState.PASSED, WEB: StepState.WAITING}
    assert play.moments(EventType.ROLLOUT_FINISHED) == []


def test_syncfail_steps_are_skipped_if_the_newer_plan_has_none() -> None:
    play = DecisionRun(with_rescue(TWO_WAVES))
    play.judge("db", Health.HEALTHY)

    play.supersede(with_rescue(make_plan_from(make_deployment("db"))))

    assert play.states == {DB: StepState.PASSED, CRY: StepState.SKIPPED}
    assert play.events[-1].reason == "passed"


def test_an_object_that_failed_is_not_forgiven_by_a_newer_plan() -> None:
    pair = (make_deployment("db"), make_deployment("mail"))
    play = DecisionRun(make_plan_from(pair, make_deployment("web")), ARGOCD)
    play.judge("db", Health.DEGRADED)
    play.wait(3)

    play.supersede(make_plan_from(pair, make_deployment("web", image="app:2")))
    play.judge("mail", Health.HEALTHY)
    play.wait(6)

    assert [step for *_, step in play.moments(EventType.RETRY_SCHEDULED)] == [DB]


def test_a_unit_that_a_newer_plan_does_not_have_ends_nothing_of_it() -> None:
    web = make_unit(make_deployment("web"), name="web")
    play = DecisionRun(
        make_plan_from(make_unit(make_deployment("db"), name="db"), web), slow=("db",)
    )
    play.supersede(make_plan_from(web))

    play.wrote("db")
    before = play.moments(EventType.UNIT_FINISHED, EventType.ROLLOUT_FINISHED)
    play.judge("web", Health.HEALTHY)

    assert before == []
    ended = [event for event in play.events if event.type is EventType.UNIT_FINISHED]
    assert [(event.unit, event.reason) for event in ended] == [(make_unit_id("web"), "passed")]
    assert play.events[-1].reason == "passed"


def test_a_step_that_is_expanding_expands_again() -> None:
    sprout = Step(
        id="apps", unit=make_unit_id("shop"), digest=digest_step((), "apps"), expansion="apps"
    )
    plan = Plan.from_fragment(PlanFragment(units=TWO_WAVES.units, steps=(sprout,)))
    play = DecisionRun(plan)
    play.expand("apps", TWO_WAVES)

    play.supersede(structs.replace(plan, digest="newer"))

    assert [type(command) for command in play.commands if isinstance(command, Expand)] == [
        Expand,
        Expand,
    ]
    assert play.states == {"apps": StepState.CHECKING}
