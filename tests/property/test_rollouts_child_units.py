"""Plans that grow: a step yields units, which yield units again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import make_config_map, make_unit, make_unit_id
from tests.support.cluster_history import assert_counted, assert_record_in_order
from tests.support.rollout_cases import (
    IN_A_HURRY,
    MOSTLY_WELL,
    WELL,
    Case,
    cases,
    no_budget,
    shared_by,
)
from tests.support.rollout_stages import PATIENCE, ProcessOptions, Stage, finished
from tidegate.model.plans.plan import (
    Edge,
    EdgeReason,
    Plan,
    PlanFragment,
    PlannedUnit,
    Step,
    digest_step,
)
from tidegate.model.rollouts.event import FINAL_STATES, EventType, StepState
from tidegate.plan.build.build import build_fragment

pytestmark = pytest.mark.timeout(PATIENCE)
YIELDS = "yields"


def around(name: str) -> PlanFragment:
    """A step that creates units, with a step before it and a step after it."""
    first, last = f"{name}-first", f"{name}-last"
    desired = [
        make_unit(make_config_map(f"u-{item}", image="app:1"), name=item, policy=IN_A_HURRY)
        for item in (first, last)
    ]
    made = build_fragment(desired, readiness_timeout=no_budget)
    yields = Step(
        id=name, unit=make_unit_id(name), digest=digest_step((), YIELDS), expansion=YIELDS
    )
    return PlanFragment(
        units=(*made.units, PlannedUnit(id=make_unit_id(name), policy=IN_A_HURRY)),
        steps=(made.steps[0], yields, made.steps[1]),
        edges=(
            Edge(f"{first}/sync/0", name, EdgeReason.PARENT),
            Edge(name, f"{last}/sync/0", EdgeReason.PARENT),
        ),
    )


class ChildDialect:
    """A dialect of these tests: the parent yields a child, and the child a case."""

    def __init__(self, case: Case) -> None:
        self.root = Plan.from_fragment(around("parent"))
        self.fruit = build_fragment(case.unit_manifests(), readiness_timeout=no_budget)
        self._yields = {b"parent": around("child"), b"child": self.fruit}

    def stage(self, case: Case) -> Stage:
        return Stage(case, workers={YIELDS: self.grow})

    def grow(self, step: bytes) -> bytes:
        return msgspec.json.encode(self._yields[step])

    @property
    def whole(self) -> Plan:
        """All of it, as if it had been known from the beginning."""
        ends = [step for name in ("parent", "child") for step in around(name).steps[::2]]
        outer_first, outer_last, inner_first, inner_last = (step.id for step in ends)
        edges = [Edge(outer_first, inner_first), Edge(inner_last, outer_last)]
        edges += [Edge(inner_first, step.id) for step in self.fruit.steps]
        edges += [Edge(step.id, inner_last) for step in self.fruit.steps]
        steps = (*ends, *self.fruit.steps)
        return Plan.from_fragment(PlanFragment(steps=steps, edges=(*edges, *self.fruit.edges)))


@shared_by(3)
@given(cases(fates=MOSTLY_WELL, most=2))
def test_steps_created_at_run_time_run_before_later_steps(case: Case) -> None:
    garden = ChildDialect(case)
    stage = garden.stage(case)

    run = stage.roll_out(garden.root).run

    assert all(state in FINAL_STATES for state in run.states.values())
    assert_record_in_order(garden.whole, stage.record)
    assert_counted(stage.record)
    if case.is_well:
        assert run.result == "passed"


@shared_by(3)
@given(cases(fates=MOSTLY_WELL, faulty=False, most=2))
def test_a_part_that_fails_fails_everything_that_yielded_it(case: Case) -> None:
    garden = ChildDialect(case)

    run = garden.stage(case).roll_out(garden.root).run

    states = run.states
    is_well = all(states[step.id] is StepState.PASSED for step in garden.fruit.steps)
    yielded, later = (
        (StepState.PASSED, StepState.PASSED) if is_well else (StepState.FAILED, StepState.SKIPPED)
    )
    assert (states["child"], states["child-last/sync/0"]) == (yielded, later)
    assert (states["parent"], states["parent-last/sync/0"]) == (yielded, later)
    causes = {
        event.reason for event in run.events_of(EventType.STEP_FAILED) if event.step in states
    }
    assert is_well or "ChildStepFailed" in causes


@shared_by(3)
@given(cases(fates=WELL, faulty=False, most=2), st.integers(1, 60), st.integers(0, 3))
def test_a_growing_plan_killed_at_any_turn_has_the_same_result(
    case: Case, turn: int, lands: int
) -> None:
    garden = ChildDialect(case)
    stage = garden.stage(case)

    stage.play(stage.actor(garden.root, ProcessOptions(dies_at=turn, lands=lands)))
    run = stage.roll_out(garden.root).run

    assert run.result == "passed"
    assert stage.objects() == finished(garden.whole)
    assert_record_in_order(garden.whole, stage.record)
    assert_counted(stage.record)
