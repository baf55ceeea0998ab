"""Rollouts of any shape under any faults: they end, and their order never breaks."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings

from tests.fakes.rollout_cases import EXAMPLES, Case, Record, a_world, cases
from tidegate.model.event import FINAL, Told
from tidegate.model.plan import Plan
from tidegate.testing.rollouts import Run, roll_out

every_case = settings(max_examples=EXAMPLES, deadline=None)


def play(case: Case, *, seed: int = 0) -> tuple[Plan, Run, Record]:
    record = Record()
    plan = case.plan()
    run = asyncio.run(roll_out(a_world(case, record, seed=seed), plan))
    return plan, run, record


@every_case
@given(cases())
def test_every_plan_comes_to_rest_in_order(case: Case) -> None:
    plan, run, record = play(case)

    assert all(state in FINAL for state in run.states.values())
    assert_events_in_order(plan, run)
    assert_record_in_order(plan, record)
    if case.is_well:
        assert run.result == "passed"


def assert_events_in_order(plan: Plan, run: Run) -> None:
    """No step is applied before all before it have passed."""
    passed: set[str] = set()
    before: dict[str, set[str]] = {step.id: set() for step in plan.steps}
    for edge in plan.edges:
        before[edge.after].add(edge.before)
    for event in run.events:
        if event.told is Told.STEP_PASSED:
            passed.add(event.step)
        elif event.told in (Told.STEP_APPLYING, Told.OBJECT_WRITTEN):
            assert before[event.step] <= passed, event


def assert_record_in_order(plan: Plan, record: Record) -> None:
    """No object of a step is written before all objects of the steps before it are ready."""
    spans = record.spans()
    names = {step.id: [i.ref.name for b in step.batches for i in b] for step in plan.steps}
    for edge in plan.edges:
        for later in names[edge.after]:
            if later not in spans:
                continue
            for earlier in names[edge.before]:
                ready = spans[earlier][1]
                assert ready is not None, (earlier, later)
                assert ready < spans[later][0], (earlier, later)
