"""The pace at which a simulated cluster's time passes for people who look at it.

A world that is held in step with real time: virtual seconds pass in proportion, however little or
much happens in them. The events are the same at any pace. It also lets go of a wait now and then,
so that whoever waits can see that somebody wants to stop.
"""

from __future__ import annotations

import asyncio

from tidegate.model.moment import SECOND, Ms
from tidegate.world.calls import Call, Ticket
from tidegate.world.facts import Fact
from tidegate.world.protocol import World

BEAT = Ms(50)
"""How much of its time a world passes at once, in real time: as smooth as eyes can tell."""
LETS_GO = Ms(200)
"""How long a wait lasts at most where nothing happens."""
READABLE = 20.0
"""Virtual seconds per real second that people can follow."""


class Paced:
    """A world with the same four methods.

    `pace`: how many of its seconds pass in a real one; None where its time is real, or where
    nobody looks on and it need not wait. Hold it around a line: a wait may end early with `Due`.
    """

    def __init__(self, world: World, pace: float | None = None) -> None:
        self._world = world
        self._pace = pace
        self._start: tuple[float, Ms] | None = None
        self._hurry = asyncio.Event()

    def now(self) -> Ms:
        return self._world.now()

    def submit(self, call: Call) -> None:
        self._world.submit(call)

    def cancel(self, ticket: Ticket) -> bool:
        return self._world.cancel(ticket)

    async def wait(self, until: Ms | None) -> tuple[Fact, ...]:
        if self._start is None:
            self._start = (asyncio.get_running_loop().time(), self.now())
        slice_end = Ms(self.now() + self._slice())
        facts = await self._world.wait(slice_end if until is None else min(until, slice_end))
        await self._keep_step(*self._start)
        return facts

    def hurry(self) -> None:
        """Wait for real time no longer: whoever looked on wants to be done."""
        self._pace = None
        self._hurry.set()

    def _slice(self) -> int:
        """How long a wait may last, in the world's own time."""
        return LETS_GO if self._pace is None else max(1, round(BEAT * self._pace))

    async def _keep_step(self, begun: float, first: Ms) -> None:
        """Let real time catch up."""
        if self._pace is None:
            return
        real = asyncio.get_running_loop().time()
        ahead = begun + (self.now() - first) / SECOND / self._pace - real
        if ahead <= 0:
            return
        try:
            async with asyncio.timeout(ahead):
                await self._hurry.wait()
        except TimeoutError:
            return
