"""Rollouts and requests in one world, none of which knows of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.support.builders import (
    make_config_map,
    make_deployment,
    make_object,
    make_plan_from,
    make_unit,
)
from tests.support.quick_workloads import quick_sandbox
from tests.support.rollout_runs import make_settings
from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.engine.driver import Driver, drive
from tidegate.health.judge import Judge
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import SECOND, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import NotFound, Outcome, Success
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Discover, Get
from tidegate.world.resilient import ResilientWorld

READING = Ms(2)
"""How long a simulated server takes to answer."""
Hear = Callable[[Event], None]


def a_world() -> Dispatcher:
    sandbox = quick_sandbox()
    sandbox.preload([make_object("v1 Namespace", "default", namespace="")])
    return Dispatcher(ResilientWorld(sandbox))


def a_rollout(world: Dispatcher, name: str, on_event: Hear) -> Driver:
    waves = (
        make_config_map(f"{name}-first"),
        make_deployment(name),
        make_config_map(f"{name}-last"),
    )
    plan = make_plan_from(make_unit(*waves, name=name))
    return Driver(world, plan, DefaultEvaluator(Judge.from_rows(())), make_settings(), on_event)


def the_map(name: str) -> Get:
    return Get(Ref(Kind("", "v1", "ConfigMap"), "default", name))


async def collect_all() -> list[object]:
    """What two rollouts and a caller that polls get, in order."""
    world, received = a_world(), list[object]()

    async def keep_asking() -> None:
        while not isinstance(received[-1], Success):
            received.extend(await send_requests(world, the_map("blue-last")))

    received.append(world.now())
    async with asyncio.TaskGroup() as group:
        for name in ("green", "blue"):
            group.create_task(drive(a_rollout(world, name, received.append)))
        group.create_task(keep_asking())
    return received


def ends(received: list[object]) -> list[str]:
    events = [item for item in received if isinstance(item, Event)]
    return [event.reason for event in events if event.type is EventType.ROLLOUT_FINISHED]


async def test_two_rollouts_and_a_request_share_a_world() -> None:
    received = await collect_all()

    assert ends(received) == ["passed", "passed"]
    assert any(isinstance(item, NotFound) for item in received)


async def test_the_same_happens_in_the_same_order_each_time() -> None:
    assert await collect_all() == await collect_all()


async def test_a_request_during_a_rollout_gets_the_current_state() -> None:
    world, events, result = a_world(), list[Event](), list[tuple[Ms, tuple[Outcome, ...]]]()
    begun: list[Ms] = []

    async def question() -> None:
        begun.append(world.now())
        outcomes = await send_requests(world, the_map("web-first"), the_map("web-last"), Discover())
        result.append((world.now(), outcomes))

    async with asyncio.TaskGroup() as group:

        def on_event(event: Event) -> None:
            events.append(event)
            if event.type is EventType.GATE_WAITING and not begun:
                group.create_task(question())
                begun.append(event.at)

        group.create_task(drive(a_rollout(world, "web", on_event)))

    ((at, (first, last, _)),) = result
    assert begun == [begun[0]] * 2
    assert at == begun[0] + READING
    assert isinstance(first, Success)
    assert isinstance(last, NotFound)
    assert events[-1].reason == "passed"


async def test_stopping_one_rollout_does_not_stop_the_other() -> None:
    world, received = a_world(), list[object]()
    stopped = a_rollout(world, "green", received.append)

    async with asyncio.TaskGroup() as group:
        item = group.create_task(drive(stopped))
        other = group.create_task(drive(a_rollout(world, "blue", received.append)))
        asyncio.get_running_loop().call_soon(stopped.stop, "enough")

    assert item.result() == "stopped"
    assert other.result() == "passed"


async def test_the_timeout_of_one_rollout_does_not_affect_the_other() -> None:
    world, received = a_world(), list[object]()
    begun = world.now()

    async with asyncio.TaskGroup() as group:
        hasty = group.create_task(
            drive(a_rollout(world, "green", received.append), until=Ms(begun + 5))
        )
        other = group.create_task(drive(a_rollout(world, "blue", received.append)))

    assert hasty.result() == "stopped"
    assert other.result() == "passed"
    assert world.now() < begun + 60 * SECOND
