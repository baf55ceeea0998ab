"""What a failure takes along, and what it leaves alone."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.support.rollout_cases import OFTEN_ILL, Case, cases, shared_by
from tests.support.rollout_stages import PATIENCE, ProcessOptions, Stage
from tidegate.model.plans.plan import Plan, Step
from tidegate.model.rollouts.event import EventType, StepState

pytestmark = pytest.mark.timeout(PATIENCE)
ill = cases(fates=OFTEN_ILL, most=2)


@shared_by(2)
@given(ill)
def test_a_failure_skips_only_later_steps(case: Case) -> None:
    plan = case.plan()

    run = Stage(case).roll_out(plan).run

    expected = _states(plan)
    assert run.states == expected
    assert run.result == ("failed" if StepState.FAILED in expected.values() else "passed")
    for event in run.events_of(EventType.STEP_SKIPPED):
        assert event.reason == "DependencyFailed"
        assert any(
            f"`{step}`" in event.message for step in _failed_before(plan, expected, event.step)
        )


@shared_by(2)
@given(ill)
def test_with_on_failure_continue_all_steps_run(case: Case) -> None:
    plan = case.plan()

    run = Stage(case).roll_out(plan, ProcessOptions(changes={"continue_on_failure": True})).run

    failing = {step.id for step in plan.steps if _is_ill(step)}
    assert run.states == {
        step.id: StepState.FAILED if step.id in failing else StepState.PASSED for step in plan.steps
    }


def _states(plan: Plan) -> dict[str, StepState]:
    states: dict[str, StepState] = {}
    for step in plan.steps:
        before = [states[edge.before] for edge in plan.edges if edge.after == step.id]
        if any(state is not StepState.PASSED for state in before):
            states[step.id] = StepState.SKIPPED
        else:
            states[step.id] = StepState.FAILED if _is_ill(step) else StepState.PASSED
    return states


def _is_ill(step: Step) -> bool:
    marks = (b"test.tidegate.dev/never", b"test.tidegate.dev/dies")
    return any(mark in item.body for batch in step.batches for item in batch for mark in marks)


def _failed_before(plan: Plan, states: dict[str, StepState], step: str) -> set[str]:
    """The failed steps from which this one is reached."""
    result, later = set[str](), [step]
    while later:
        name = later.pop()
        before = [edge.before for edge in plan.edges if edge.after == name]
        result.update(item for item in before if states[item] is StepState.FAILED)
        later += before
    return result
