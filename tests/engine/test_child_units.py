"""A step that yields a unit: the child goes through everything that units go through."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.engine.test_ownership import owned
from tests.support.builders import (
    make_config_map,
    make_manifest,
    make_object,
    make_unit,
    make_unit_id,
)
from tests.support.rollout_runs import Run
from tests.support.rollout_stage import PATIENT, Stage
from tests.support.write_records import Record
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.manifest import Manifests, Phase
from tidegate.model.plans.plan import HookPolicy, Plan, PlanFragment, PlannedUnit, Step, digest_step
from tidegate.model.rollouts.event import Event, EventType, StepState
from tidegate.model.units.policy import Policy
from tidegate.plan.build.build import build_fragment
from tidegate.world.messages import NotFound

YIELDS = "yields"
RULES = Policy(semantics=PATIENT, prune=True)
FIRST, SECOND = make_config_map("first"), make_config_map("second")
UNKNOWN = make_object("nobody.example/v1 Gadget", "odd")


class ChildUnitStage:
    """A parent whose only step yields a unit."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.parent, self.child = (
            make_unit_id(f"{stage.namespace}-parent"),
            make_unit_id(stage.namespace),
        )
        self.step = f"{self.parent}/expand"

    def wants(self, *waves: JsonObject) -> Manifests:
        own_items = (owned(self.stage.here(body), self.stage.namespace) for body in waves)
        return make_unit(*own_items, name=self.stage.namespace, policy=RULES)

    async def roll_out(self, child: Manifests) -> Run:
        self.stage.world.yields[self.step] = build_fragment(
            [child], readiness_timeout=readiness_timeout
        )
        digest = digest_step((), YIELDS)
        step = Step(id=self.step, unit=self.parent, digest=digest, expansion=YIELDS)
        parent = PlannedUnit(id=self.parent, policy=RULES)
        plan = Plan.from_fragment(PlanFragment(units=(parent,), steps=(step,)))
        return await self.stage.start_plan(plan).ends()


@pytest.fixture
def child_units(living_stage: Stage) -> ChildUnitStage:
    return ChildUnitStage(living_stage)


def ends(run: Run) -> dict[str, str]:
    return {str(event.unit): event.reason for event in run.events_of(EventType.UNIT_FINISHED)}


def names(events: list[Event]) -> list[str]:
    return [event.ref.name for event in events if event.ref is not None]


async def test_an_object_of_a_child_that_left_git_is_pruned(child_units: ChildUnitStage) -> None:
    first = await child_units.roll_out(child_units.wants(FIRST, SECOND))

    second = await child_units.roll_out(child_units.wants(FIRST))

    gone = await child_units.stage.client.get(await child_units.stage.ref(SECOND))
    assert (first.result, second.result) == ("passed", "passed")
    assert names(second.events_of(EventType.OBJECT_PRUNED)) == ["second"]
    assert isinstance(gone, NotFound)


async def test_a_bad_object_of_a_child_is_found_before_any_of_its_writes(
    child_units: ChildUnitStage, record: Record
) -> None:
    await record.mark()

    run = await child_units.roll_out(child_units.wants(FIRST, UNKNOWN))

    (failure,) = run.events_of(EventType.STEP_FAILED)
    assert (run.result, run.states) == ("failed", {child_units.step: StepState.FAILED})
    assert failure.reason == "NotServed"
    assert "odd" in failure.message
    assert await record.written() == []


async def test_a_child_ends_by_itself_and_a_second_run_writes_nothing(
    child_units: ChildUnitStage, record: Record
) -> None:
    expected = child_units.wants(FIRST, SECOND)
    first = await child_units.roll_out(expected)
    await record.mark()

    second = await child_units.roll_out(expected)

    everybody = {str(child_units.child): "passed", str(child_units.parent): "passed"}
    assert list(ends(first)) == [str(child_units.child), str(child_units.parent)]
    assert (ends(first), ends(second)) == (everybody, everybody)
    assert names(first.events_of(EventType.OBJECT_WRITTEN)) == ["first", "second"]
    assert await record.written() == []


async def test_hooks_of_a_child_run_once(child_units: ChildUnitStage, record: Record) -> None:
    expected = child_units.wants(FIRST)
    hook = make_manifest(child_units.stage.here(make_config_map("hook")), phase=Phase.PRE_SYNC)
    hook = structs.replace(hook, hook_policies=(HookPolicy.BEFORE_CREATION,))
    expected = structs.replace(expected, manifests=(hook, *expected.manifests))
    await record.mark()

    first = await child_units.roll_out(expected)
    second = await child_units.roll_out(expected)

    made = [change for change in await record.changes() if change.startswith("create")]
    assert (first.result, second.result) == ("passed", "passed")
    assert made == ["create configmaps/hook", "create configmaps/first"]
