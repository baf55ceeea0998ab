"""A step that yields a unit: the child goes through everything that units go through."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.engine.test_belongings import owned
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


class Nursery:
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
        return await self.stage.start(plan).ends()


@pytest.fixture
def nursery(living_stage: Stage) -> Nursery:
    return Nursery(living_stage)


def ends(run: Run) -> dict[str, str]:
    return {str(event.unit): event.reason for event in run.told(EventType.UNIT_FINISHED)}


def names(events: list[Event]) -> list[str]:
    return [event.ref.name for event in events if event.ref is not None]


async def test_an_object_of_a_child_that_left_git_is_pruned(nursery: Nursery) -> None:
    first = await nursery.roll_out(nursery.wants(FIRST, SECOND))

    second = await nursery.roll_out(nursery.wants(FIRST))

    gone = await nursery.stage.client.get(await nursery.stage.ref(SECOND))
    assert (first.result, second.result) == ("passed", "passed")
    assert names(second.told(EventType.OBJECT_PRUNED)) == ["second"]
    assert isinstance(gone, NotFound)


async def test_a_bad_object_of_a_child_is_found_before_any_of_its_writes(
    nursery: Nursery, record: Record
) -> None:
    await record.mark()

    run = await nursery.roll_out(nursery.wants(FIRST, UNKNOWN))

    (failure,) = run.told(EventType.STEP_FAILED)
    assert (run.result, run.states) == ("failed", {nursery.step: StepState.FAILED})
    assert failure.reason == "NotServed"
    assert "odd" in failure.message
    assert await record.written() == []


async def test_a_child_ends_by_itself_and_a_second_run_writes_nothing(
    nursery: Nursery, record: Record
) -> None:
    expected = nursery.wants(FIRST, SECOND)
    first = await nursery.roll_out(expected)
    await record.mark()

    second = await nursery.roll_out(expected)

    everybody = {str(nursery.child): "passed", str(nursery.parent): "passed"}
    assert list(ends(first)) == [str(nursery.child), str(nursery.parent)]
    assert (ends(first), ends(second)) == (everybody, everybody)
    assert names(first.told(EventType.OBJECT_WRITTEN)) == ["first", "second"]
    assert await record.written() == []


async def test_hooks_of_a_child_run_once(nursery: Nursery, record: Record) -> None:
    expected = nursery.wants(FIRST)
    hook = make_manifest(nursery.stage.here(make_config_map("hook")), phase=Phase.PRE_SYNC)
    hook = structs.replace(hook, hook_policies=(HookPolicy.BEFORE_CREATION,))
    expected = structs.replace(expected, manifests=(hook, *expected.manifests))
    await record.mark()

    first = await nursery.roll_out(expected)
    second = await nursery.roll_out(expected)

    made = [deed for deed in await record.deeds() if deed.startswith("create")]
    assert (first.result, second.result) == ("passed", "passed")
    assert made == ["create configmaps/hook", "create configmaps/first"]
