"""Time of a simulated cluster at a pace that people can follow."""

from __future__ import annotations

import asyncio

from tests.support.builders import make_config_map, make_deployment, make_plan_from
from tests.support.rollout_runs import make_settings
from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.clusters.pace import PacedWorld
from tidegate.engine.driver import Driver, drive
from tidegate.health.judge import Judge
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.bootstrap import load_base_objects
from tidegate.sandbox.controller_set import build_controllers
from tidegate.sandbox.node.profile_file import default_profile
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.protocol import World
from tidegate.world.resilient import ResilientWorld

PLAN = make_plan_from(make_config_map(), make_deployment("web"))
SWIFT = 10_000.0


def a_world() -> Sandbox:
    sandbox = Sandbox(controllers=build_controllers(default_profile(), load_builtin_knowledge()))
    sandbox.preload(load_base_objects())
    return sandbox


def a_paced_world(pace: float) -> PacedWorld:
    world = PacedWorld(ResilientWorld(a_world()))
    world.set_pace(pace)
    return world


def a_driver(world: World, events: list[Event], plan: Plan = PLAN) -> Driver:
    return Driver(
        Dispatcher(world),
        plan,
        DefaultEvaluator(Judge.from_rows(())),
        make_settings(),
        events.append,
    )


async def test_the_same_happens_at_any_pace() -> None:
    free, paced = list[Event](), list[Event]()

    await drive(a_driver(ResilientWorld(a_world()), free))
    await drive(a_driver(a_paced_world(SWIFT), paced))

    assert paced == free


async def test_time_passes_in_proportion() -> None:
    """Waits are never too short; how much too long they are is not asked."""
    loop = asyncio.get_running_loop()
    world = a_paced_world(100.0)
    end = Ms(world.now() + 20 * SECOND)

    begun = loop.time()
    while world.now() < end:
        await world.wait(end)

    assert loop.time() - begun >= 0.19


async def test_a_rollout_stopped_before_it_starts_ends() -> None:
    """Nothing is under way then, and no answer would ever end the wait."""
    events = list[Event]()
    driver = a_driver(ResilientWorld(a_world()), events)
    asyncio.get_running_loop().call_soon(driver.stop, "interrupted")

    result = await drive(driver)

    assert result == "stopped"
    assert [event.type for event in events] == [EventType.ROLLOUT_FINISHED]


async def test_a_stop_does_not_wait_for_real_time() -> None:
    """At this pace a rollout takes hours."""
    events = list[Event]()
    driver = a_driver(a_paced_world(0.001), events)
    asyncio.get_running_loop().call_later(0.01, driver.stop, "interrupted")

    result = await drive(driver)

    assert result == "stopped"
