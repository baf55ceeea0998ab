"""A gate that waits for several objects reports each one that is ready."""

from __future__ import annotations

from tests.support.builders import (
    annotate,
    make_config_map,
    make_deployment,
    make_object,
    make_plan_from,
)
from tests.support.quick_workloads import quick_sandbox
from tests.support.rollout_runs import roll_out
from tidegate.model.rollouts.event import EventType
from tidegate.sandbox.world import Sandbox

EARLY = annotate(make_deployment("early"), after="1000")
LATE = annotate(make_deployment("late"), after="5000")


def a_world() -> Sandbox:
    world = quick_sandbox()
    world.preload([make_object("v1 Namespace", "default", namespace="")])
    return world


async def test_an_object_that_is_ready_before_the_others_is_reported() -> None:
    run = await roll_out(a_world(), make_plan_from((EARLY, LATE)))

    messages = [
        (event.ref.name, event.at) for event in run.events_of(EventType.OBJECT_READY) if event.ref
    ]
    (opened,) = run.events_of(EventType.GATE_OPENED)
    assert [name for name, _ in messages] == ["early", "late"]
    assert messages[0][1] < messages[1][1] == opened.at


async def test_an_object_that_was_not_awaited_is_not_reported() -> None:
    run = await roll_out(a_world(), make_plan_from(make_config_map()))

    assert run.result == "passed"
    assert not run.events_of(EventType.OBJECT_READY)
