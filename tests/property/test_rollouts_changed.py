"""Rollouts that are stopped, or whose plan changes, at any turn."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.cluster_history import assert_counted, assert_record_in_order
from tests.support.rollout_cases import WELL, Case, Shape, cases, every_case, shared_by
from tests.support.rollout_runs import Run
from tests.support.rollout_stages import PATIENCE, ProcessOptions, Stage, finished
from tidegate.engine.messages import Apply, CompareStep, Delete, StopRequested
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import Ms
from tidegate.sandbox.faults import CallFault, FaultSelector, Frequency, Rejection
from tidegate.world.messages import ServerError

pytestmark = pytest.mark.timeout(PATIENCE)
well = cases(fates=WELL, most=2)
turns = st.integers(1, 60)


@every_case
@given(well, turns)
def test_a_rollout_stopped_at_any_turn_is_finished_by_the_next(case: Case, turn: int) -> None:
    stage, plan = Stage(case), case.plan()

    stopped = stage.roll_out(
        plan, ProcessOptions(calls={turn: lambda driver: driver.stop("enough")})
    )
    begun = [
        item
        for item in stopped.script.ordered_after(StopRequested)
        if isinstance(item, Apply | Delete | CompareStep)
    ]
    rest = stage.roll_out(plan, ProcessOptions(holder="two")).run

    assert stopped.run.result in ("stopped", "passed")
    assert not {Apply, CompareStep, Delete} & set(begun)
    assert rest.result == "passed"
    assert_record_in_order(plan, stage.record)
    assert stage.objects() == finished(plan)


@shared_by(2)
@given(well, turns, st.integers(0, 1))
def test_a_newer_plan_takes_over_at_any_turn(case: Case, turn: int, since: int) -> None:
    stage, newer = Stage(case), case.plan(image="app:2", since=since)

    part = ProcessOptions(calls={turn: lambda driver: driver.supersede(newer)})
    run = stage.roll_out(case.plan(), part).run

    assert run.result == "passed"
    assert_counted(stage.record)
    if _ran(run, newer):
        assert stage.objects() == finished(newer)
        assert_kept_steps_ran_once(case.plan(), newer, run)
        if not since:
            assert_record_in_order(newer, stage.record, image="app:2")


def trouble(probability: float) -> CallFault:
    refusal = ServerError(
        status=500, reason="InternalError", message="Internal error occurred: seeded fault"
    )
    return CallFault(
        Rejection(refusal), FaultSelector(), Frequency(probability=probability, until=Ms(20_000))
    )


BUSY = Case(
    units=(
        ((Shape("Deployment", 20, 0, "well"), Shape("Fleeting", 0, 0, "well")),),
        ((Shape("Deployment", 0, 0, "well"),),),
    ),
    depends=((), (0,)),
    faults=(trouble(0.3), trouble(0.1)),
)
"""The first step is compared again while a plan without its object takes over."""


@shared_by(2)
@given(well, well, turns)
@example(BUSY, Case(units=(((Shape("ConfigMap", 0, 0, "well"),),),), depends=((),)), 19)
def test_a_plan_of_another_shape_takes_over_at_any_turn(case: Case, other: Case, turn: int) -> None:
    stage, newer = Stage(case), other.plan(image="app:2")

    part = ProcessOptions(calls={turn: lambda driver: driver.supersede(newer)})
    run = stage.roll_out(case.plan(), part).run

    assert run.result == "passed"
    assert_counted(stage.record)
    if _ran(run, newer):
        there = stage.objects()
        assert {ref: there.get(ref) for ref in finished(newer)} == finished(newer)
        assert_record_in_order(newer, stage.record, image="app:2")


def _ran(run: Run, plan: Plan) -> bool:
    """Whether the plan had its turn; it comes too late for a rollout that has ended."""
    begun = run.events_of(EventType.ROLLOUT_STARTED, EventType.ROLLOUT_SUPERSEDED)
    return plan.digest in {event.reason for event in begun}


def assert_kept_steps_ran_once(older: Plan, newer: Plan, run: Run) -> None:
    """What had passed and is the same in both plans, with all before it, is not looked at again."""
    digests = {step.id: step.digest for step in older.steps}
    before = {
        step.id: {edge.before for edge in newer.edges if edge.after == step.id}
        for step in newer.steps
    }
    change = next(
        (n for n, event in enumerate(run.events) if event.type is EventType.ROLLOUT_SUPERSEDED), 0
    )
    passed = {event.step for event in run.events[:change] if event.type is EventType.STEP_PASSED}
    kept: set[str] = set()
    for step in newer.steps:
        if step.id in passed and digests[step.id] == step.digest and before[step.id] <= kept:
            kept.add(step.id)
    again = {event.step for event in run.events[change:] if event.type is EventType.STEP_CHECKING}
    assert not again & kept
