"""The one who waits at a world for everybody who calls over HTTP.

Time is real here: a world's seconds pass at a pace. A call that is under way is answered at once,
so that a client waits no longer than its question needs; the world's clock may run a little ahead
for that, and stands until real time has caught up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

from tidegate.model.moment import SECOND, Ms
from tidegate.world.calls import Call, Request, Ticket, Watch
from tidegate.world.facts import Answer, Bookmark, Changed, Due, Ended, Outcome
from tidegate.world.protocol import World

BEAT = 0.02
"""Seconds: how late a change may be told that nobody has asked for."""
LEAD = Ms(200)
"""How far the world's clock may run ahead for calls that are under way."""
STRIDE = Ms(5)
"""How far at once; a call takes no longer, unless something slows it."""

Told = Changed | Bookmark | Ended


def real_now() -> Ms:
    """The moment at which a world begins that is to look like one of today."""
    return Ms(int(time.time()) * SECOND)


class Switchboard:
    """Hands calls to a world, and what comes of them to whoever called."""

    def __init__(self, world: World, *, pace: float = 1.0) -> None:
        self.now = world.now
        self._world = world
        self._pace = pace
        self._tickets = map(Ticket, count(1))
        self._answers: dict[Ticket, asyncio.Future[Outcome]] = {}
        self._watches: dict[Ticket, asyncio.Queue[Told]] = {}
        self._called = asyncio.Event()

    async def run(self) -> None:
        """Let time pass, for ever."""
        clock = asyncio.get_running_loop().time
        begun, first = clock(), self.now()
        while True:
            self._called.clear()
            due = Ms(first + int((clock() - begun) * SECOND * self._pace))
            asked = min(Ms(self.now() + STRIDE), Ms(due + LEAD)) if self._answers else due
            for fact in await self._world.wait(max(due, asked, self.now())):
                self._route(fact)
            if not self._answers or self.now() >= due + LEAD:
                await self._rest()

    async def ask(self, request: Request) -> Outcome:
        """What a world answers."""
        ticket, answer = next(self._tickets), asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        self._world.submit(Call(ticket=ticket, request=request))
        self._called.set()
        try:
            outcome: Outcome = await answer
        finally:
            if self._answers.pop(ticket, None) is not None:
                self._world.cancel(ticket)
        return outcome

    @asynccontextmanager
    async def watch(self, request: Watch) -> AsyncIterator[Callable[[], AsyncIterator[Told]]]:
        """What is told of a watch, one by one, until it ends or nobody listens any more."""
        ticket = next(self._tickets)
        queue = self._watches[ticket] = asyncio.Queue[Told]()
        self._world.submit(Call(ticket=ticket, request=request))
        self._called.set()

        async def told() -> AsyncIterator[Told]:
            while True:
                fact = await queue.get()
                yield fact
                if isinstance(fact, Ended):
                    return

        try:
            yield told
        finally:
            del self._watches[ticket]
            self._world.cancel(ticket)

    def lasting(self, seconds: int) -> Ms:
        """How long a span of real time is in the world."""
        return Ms(int(seconds * SECOND * self._pace))

    def _route(self, fact: Told | Answer | Due) -> None:
        match fact:
            case Answer():
                answer = self._answers.pop(fact.ticket, None)
                if answer is not None and not answer.done():
                    answer.set_result(fact.outcome)
            case Changed() | Bookmark() | Ended():
                if fact.ticket in self._watches:
                    self._watches[fact.ticket].put_nowait(fact)
            case Due():
                pass

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(BEAT):
                await self._called.wait()
        except TimeoutError:
            return
