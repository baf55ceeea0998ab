"""Virtual time of a simulated cluster, slowed down for people who watch it.

A World that passes virtual seconds in proportion to real ones, however many events they
contain. The events are the same at any pace.
"""

from __future__ import annotations

import asyncio

from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import Message
from tidegate.world.protocol import World
from tidegate.world.requests import Call, RequestId

TICK = Ms(50)
"""Real time of one step: short enough to look smooth."""


class PacedWorld:
    """A World that does not wait for real time until a pace is set.

    Wrap it around a ResilientWorld: a wait may end early with `TimerFired`.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._pace: float | None = None
        self._start: tuple[float, Ms] | None = None
        self._woken = asyncio.Event()

    def set_pace(self, pace: float | None) -> None:
        """Let `pace` virtual seconds pass in a real one; None does not wait."""
        self._pace, self._start = pace, None

    def now(self) -> Ms:
        return self._world.now()

    def submit(self, call: Call) -> None:
        self._world.submit(call)

    def cancel(self, request_id: RequestId) -> bool:
        return self._world.cancel(request_id)

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        if self._pace is None:
            return await self._world.wait(until)
        self._woken.clear()
        if self._start is None:
            self._start = (asyncio.get_running_loop().time(), self.now())
        tick = Ms(self.now() + max(1, round(TICK * self._pace)))
        messages = await self._world.wait(tick if until is None else min(until, tick))
        await self._wait_for_real_time(*self._start, self._pace)
        return messages

    def wake(self) -> None:
        self._woken.set()
        self._world.wake()

    async def _wait_for_real_time(self, real_start: float, virtual_start: Ms, pace: float) -> None:
        """Wait until real time has caught up with virtual time."""
        real_now = asyncio.get_running_loop().time()
        delay = real_start + (self.now() - virtual_start) / SECOND / pace - real_now
        if delay <= 0:
            return
        try:
            async with asyncio.timeout(delay):
                await self._woken.wait()
        except TimeoutError:
            return
