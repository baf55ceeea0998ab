"""Objects of others that a unit waits for and never writes, on a simulated cluster."""

from __future__ import annotations

import asyncio
from contextlib import closing

from tests.support.builders import (
    DEFAULT_POLICY,
    make_deployment,
    make_plan_from,
    make_unit,
    make_unit_id,
)
from tests.support.cluster_client import ClusterClient, require_body
from tests.support.ordered_manifests import a_thing, no_budget, ref_of
from tests.support.rollout_runs import Run, make_driver, make_settings, roll_out, with_policy
from tidegate.clusters.journal import read_journal
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.engine.driver import drive
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.units.policy import GateScope, Policy
from tidegate.model.units.unit import Dependency, Unit
from tidegate.plan.build.build import build_plan, plan_unit
from tidegate.workers.jq import Jq
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.protocol import World
from tidegate.world.resilient import ResilientWorld

THEIRS = ref_of("apps/v1 Deployment", "theirs")
PROVIDER_PLAN = make_plan_from(make_unit(make_deployment("theirs"), name="other"))
UNIT = "tidegate.dev/unit"


def waiting(policy: Policy = DEFAULT_POLICY, *, depends: bool = True) -> Manifests:
    """A unit with one ConfigMap, which waits for a Deployment that it does not contain."""
    unit = Unit(
        id=make_unit_id("shop"),
        policy=policy,
        dependencies=(Dependency(ref=THEIRS),) if depends else (),
    )
    return Manifests(unit=unit, manifests=(a_thing("ConfigMap", "ours"),))


def planned(*units: Manifests) -> Plan:
    return build_plan(units, readiness_timeout=no_budget)


async def together(world: World, *plans: Plan) -> list[Run]:
    """The events of these rollouts, which share one world."""
    dispatcher, runs = Dispatcher(ResilientWorld(world)), [Run() for _ in plans]
    with closing(Jq()) as jq:
        async with asyncio.TaskGroup() as group:
            for number, (plan, run) in enumerate(zip(plans, runs, strict=True)):
                driver = make_driver(dispatcher, plan, run, make_settings(number), jq)
                group.create_task(drive(driver), name=f"rollout {number}")
    for run in runs:
        run.result = run.events[-1].reason
    return runs


def written(run: Run) -> dict[str, int]:
    events = run.events_of(EventType.OBJECT_WRITTEN)
    return {event.ref.name: event.at for event in events if event.ref is not None}


async def test_nothing_is_written_before_awaited_objects_are_healthy() -> None:
    ours, theirs = await together(
        build_sandbox(SimulationConfig()), planned(waiting()), PROVIDER_PLAN
    )

    (opened,) = [event.at for event in theirs.events_of(EventType.GATE_OPENED)]
    assert (ours.result, theirs.result) == ("passed", "passed")
    assert list(written(ours)) == ["ours"]
    assert written(ours)["ours"] >= opened > written(theirs)["theirs"]
    waits = [event for event in ours.events_of(EventType.GATE_WAITING) if event.ref == THEIRS]
    assert waits
    assert {event.step for event in waits} == {"shop/awaits"}


async def test_an_awaited_object_is_neither_written_nor_recorded() -> None:
    world = build_sandbox(SimulationConfig())
    await roll_out(world, PROVIDER_PLAN, make_settings(0))
    before = await ClusterClient(Dispatcher(ResilientWorld(world))).get(THEIRS)

    plan = with_policy(planned(waiting()), prune=True)
    run = await roll_out(world, plan, make_settings(1))

    after = await ClusterClient(Dispatcher(ResilientWorld(world))).get(THEIRS)
    journal = (
        await read_journal(plan_unit(waiting().unit), Dispatcher(ResilientWorld(world)))
    ).journal
    assert run.result == "passed"
    assert require_body(after) == require_body(before)
    assert [ref.name for ref in journal.entries] == ["ours"]


async def test_a_second_run_awaits_it_again_and_writes_nothing() -> None:
    world = build_sandbox(SimulationConfig())
    await roll_out(world, PROVIDER_PLAN, make_settings(0))
    await roll_out(world, planned(waiting()), make_settings(1))

    again = await roll_out(world, planned(waiting()), make_settings(2))

    assert again.result == "passed"
    assert written(again) == {}


async def test_an_awaited_object_that_never_appears_fails_the_gate() -> None:
    run = await roll_out(build_sandbox(SimulationConfig()), planned(waiting()))

    assert run.result == "failed"
    assert run.states == {"shop/awaits": StepState.FAILED, "shop/sync/0": StepState.SKIPPED}
    assert written(run) == {}
    (failure,) = run.events_of(EventType.STEP_FAILED)
    assert "Deployment default/theirs" in failure.message


async def test_listed_objects_hold_the_units_after_the_unit_and_not_the_unit_itself() -> None:
    policy = Policy(gates=GateScope.LISTED, gating_refs=(THEIRS,))
    later = make_unit(make_deployment("later"), name="later", after=("shop",))
    plan = planned(waiting(policy, depends=False), later)

    ours, theirs = await together(build_sandbox(SimulationConfig()), plan, PROVIDER_PLAN)

    (opened,) = [event.at for event in theirs.events_of(EventType.GATE_OPENED)]
    assert ours.result == "passed"
    assert written(ours)["ours"] < opened <= written(ours)["later"]
