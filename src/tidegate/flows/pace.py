"""The pace at which a simulated cluster's time passes for people who look at it.

A world that is held in step with real time: virtual seconds pass in proportion, however little or
much happens in them. The events are the same at any pace.
"""

from __future__ import annotations

import asyncio

from tidegate.model.moment import SECOND, Ms
from tidegate.world.calls import Call, Ticket
from tidegate.world.facts import Fact
from tidegate.world.protocol import World

BEAT = Ms(50)
"""How much of its time a world passes at once, in real time: as smooth as eyes can tell."""


class Paced:
    """A world whose time does not wait for anybody, until it is told to keep a pace.

    Hold it around a line: a wait may end early with `Due`.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._pace: float | None = None
        self._start: tuple[float, Ms] | None = None
        self._woken = asyncio.Event()

    def keep(self, pace: float | None) -> None:
        """From now on, let so many of its seconds pass in a real one; None does not wait."""
        self._pace, self._start = pace, None

    def now(self) -> Ms:
        return self._world.now()

    def submit(self, call: Call) -> None:
        self._world.submit(call)

    def cancel(self, ticket: Ticket) -> bool:
        return self._world.cancel(ticket)

    async def wait(self, until: Ms | None) -> tuple[Fact, ...]:
        if self._pace is None:
            return await self._world.wait(until)
        self._woken.clear()
        if self._start is None:
            self._start = (asyncio.get_running_loop().time(), self.now())
        beat = Ms(self.now() + max(1, round(BEAT * self._pace)))
        facts = await self._world.wait(beat if until is None else min(until, beat))
        await self._keep_step(*self._start, self._pace)
        return facts

    def wake(self) -> None:
        self._woken.set()
        self._world.wake()

    async def _keep_step(self, begun: float, first: Ms, pace: float) -> None:
        """Let real time catch up."""
        real = asyncio.get_running_loop().time()
        ahead = begun + (self.now() - first) / SECOND / pace - real
        if ahead <= 0:
            return
        try:
            async with asyncio.timeout(ahead):
                await self._woken.wait()
        except TimeoutError:
            return
