"""A pause that is pending can be ended."""

from __future__ import annotations

import asyncio

from tidegate.model.times import MINUTE, Ms
from tidegate.world.messages import TimerFired
from tidegate.world.protocol import World


async def test_a_wait_that_is_woken_ends_before_its_deadline(world: World) -> None:
    until = Ms(world.now() + MINUTE)
    asyncio.get_running_loop().call_soon(world.wake)

    facts = await world.wait(until)

    assert facts == (TimerFired(),)
    assert world.now() < until


async def test_a_wake_before_a_wait_is_not_remembered(world: World) -> None:
    until = Ms(world.now() + 50)
    world.wake()

    await world.wait(until)

    assert world.now() >= until - 1
