"""Which rollout may write: by records and heartbeats, whatever the clocks show."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.builders import make_config_map, make_unit
from tests.support.killable_processes import Absence, ProcessedWrite
from tests.support.recorded_wording import RecordedWording
from tests.support.rollout_cases import Case, Shape
from tests.support.rollout_hooks import HookCase, HookShape
from tests.support.rollout_stages import NOTHING, ProcessOptions, Stage, finished
from tidegate.engine.records.heartbeat import LEASE_DURATION
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.model.k8s.kinds import LEASE, SECRET
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import HookPolicy, Plan
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import SECOND, Ms
from tidegate.plan.build.build import build_plan
from tidegate.sandbox.faults import CallFault, FaultSelector, Frequency, ResponseLoss
from tidegate.sandbox.world import START
from tidegate.world.messages import is_error

CONFIG = Shape("ConfigMap", 0, 0, "well")
SLOW = Shape("Deployment", 7_000, 0, "well")
WAITS = Case((((SLOW,), (CONFIG,)),), ((),))
"""Seven seconds between its two writes."""


def written(stage: Stage, sender: str) -> list[ProcessedWrite]:
    """What one process wrote of the unit's objects."""
    ours = (item for item in stage.realm.landed if item.sender == sender)
    return [our for our in ours if our.write.ref.namespace == "default"]


def many(number: int) -> Plan:
    units = [
        make_unit(make_config_map(f"u{item}", image="app:1"), name=f"unit-{item}")
        for item in range(number)
    ]
    return build_plan(units, readiness_timeout=lambda _: None)


@pytest.mark.parametrize("fast", [16_000, -16_000, 3_600_000, -3_600_000])
def test_a_clock_that_is_ahead_takes_nothing_from_a_live_holder(fast: int) -> None:
    stage, plan = Stage(WAITS), WAITS.plan()
    first = stage.actor(plan)
    second = stage.actor(plan, ProcessOptions(holder="two", begins=1_000, fast=fast))

    stage.play(first, second)

    assert (first.run.result, second.run.result) == ("passed", "passed")
    assert len(written(stage, "1")) == 2
    assert written(stage, "2") == []


@pytest.mark.parametrize("fast", [0, 16_000, -16_000, 3_600_000, -3_600_000])
def test_a_dead_holder_is_waited_for_as_long_as_its_term(fast: int) -> None:
    stage, plan = Stage(WAITS), WAITS.plan()
    killed = stage.actor(plan)
    died = Ms(START + 2 * SECOND)
    stage.play(killed, happenings=[(died, killed.life.kill)])

    heir = stage.roll_out(plan, ProcessOptions(holder="two", fast=fast))

    secrets = (item for item in stage.realm.landed if item.write.ref.kind == SECRET)
    taken = min(secret.at for secret in secrets if secret.sender == "2")
    assert killed.life.result == "killed"
    assert written(stage, "2")
    assert died + LEASE_DURATION <= taken <= died + LEASE_DURATION + 3 * SECOND
    assert [event.reason for event in heir.run.events_of(EventType.UNIT_WAITING)] == ["LeaseHeld"]
    assert len(heir.run.events_of(EventType.UNIT_ACQUIRED)) == 1


def test_a_waiting_rollout_names_the_holder_and_reports_that_it_continues(
    wording: RecordedWording,
) -> None:
    stage, newer = Stage(WAITS), WAITS.plan(image="app:2")
    first = stage.actor(WAITS.plan())
    second = stage.actor(newer, ProcessOptions(holder="two", begins=1_000))

    stage.play(first, second)

    waits = second.run.events_of(EventType.UNIT_WAITING)
    assert {str(event.unit) for event in waits} == {"unit-0"}
    wording(waits[-1].message)
    assert [str(event.unit) for event in second.run.events_of(EventType.UNIT_ACQUIRED)] == [
        "unit-0"
    ]
    assert first.run.result == "stopped"
    assert not first.run.events_of(EventType.UNIT_WAITING, EventType.UNIT_ACQUIRED)


@pytest.mark.parametrize("at", [52, 56, 60, 64])
def test_a_frozen_holder_writes_nothing_before_it_holds_the_unit_again(at: int) -> None:
    stage = Stage(NOTHING)
    bodies = tuple(make_config_map(f"u0-{number}", image="app:1") for number in range(200))
    plan = build_plan([make_unit(bodies, name="unit-0")], readiness_timeout=lambda _: None)
    first = stage.actor(plan)
    second = stage.actor(plan, ProcessOptions(holder="two", begins=1_000))

    stage.play(first, second, happenings=Absence(at, 20, "frozen").happenings(first.life))

    thawed = Ms(START + at + 20 * SECOND)
    assert 0 < len(written(stage, "1")) < 200
    assert max(item.at for item in written(stage, "1")) < thawed
    assert len(written(stage, "1")) + len(written(stage, "2")) == 200
    assert (first.run.result, second.run.result) == ("passed", "passed")


@pytest.mark.parametrize("lost_until", [21_500, 24_000])
def test_a_frozen_holder_repeats_no_write_after_another_one_has_the_unit(lost_until: int) -> None:
    """The write has no answer, and the process has a new Lease before it tries again."""
    lost = CallFault(
        ResponseLoss(is_performed=False),
        FaultSelector(verbs=("patch",)),
        Frequency(until=Ms(lost_until)),
    )
    hook = HookShape(
        Shape("Job", 900, 0, "well"), Phase.PRE_SYNC, policies=(HookPolicy.BEFORE_CREATION,)
    )
    case = HookCase(((SLOW,), (CONFIG,)), (hook,), (lost,))
    stage = Stage(case)
    first = stage.actor(case.plan())
    second = stage.actor(case.plan(image="app:2"), ProcessOptions(holder="two", begins=1_500))

    stage.play(first, second, happenings=Absence(1_000, 20, "frozen").happenings(first.life))

    records = (item for item in stage.realm.landed if item.write.ref.kind == SECRET)
    taken = min(record.at for record in records if record.sender == "2")
    assert (first.run.result, second.run.result) == ("stopped", "passed")
    assert max(item.at for item in written(stage, "1")) < taken


def test_a_unit_taken_over_by_another_rollout_does_not_affect_others() -> None:
    waves = ((SLOW,), (CONFIG,), (SLOW,), (CONFIG,))
    stage, case = Stage(NOTHING), Case((waves, waves), ((), ()))
    both, result = case.plan(), Case((waves,), ((),)).plan()
    first = stage.actor(both)
    second = stage.actor(result, ProcessOptions(holder="two", begins=2_000))

    stage.play(first, second, happenings=Absence(1_000, 21, "cut").happenings(first.life))

    senders = {item.sender for item in stage.realm.landed if item.write.ref.name.startswith("u1")}
    assert senders == {"1"}
    assert second.run.result in ("passed", "stopped")


def test_two_hundred_units_are_taken_side_by_side_with_few_calls() -> None:
    stage, plan = Stage(NOTHING), many(200)

    run = stage.roll_out(plan).run

    ours = [item for item in stage.realm.landed if item.write.ref.namespace == TIDEGATE_NAMESPACE]
    calls = Counter(our.write.ref.name for our in ours if our.write.ref.kind == SECRET)
    assert run.result == "passed"
    assert len(calls) == 200
    assert max(calls.values()) <= 3
    assert not [our for our in ours if is_error(our.outcome) and our.write.ref.kind == SECRET]
    first_written = min(item.at for item in written(stage, "1"))
    assert first_written - START < 1_000


def test_the_heartbeat_is_deleted_with_its_rollout() -> None:
    stage = Stage(WAITS)

    stage.roll_out(WAITS.plan())

    assert stage.realm.clusters[""].reader.list_objects(LEASE, TIDEGATE_NAMESPACE) == []
    assert stage.objects() == finished(WAITS.plan())
