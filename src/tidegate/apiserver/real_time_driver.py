"""Real-time driver: the only waiter of a World, on behalf of all HTTP clients.

The time of the World follows real time at a configured speed. Calls are answered at once, so that a
client waits no longer than its request needs. For that, the clock of the World may run slightly
ahead; it then stops until real time has caught up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import Bookmark, Outcome, Response, TimerFired, WatchEnded, WatchEvent
from tidegate.world.protocol import World
from tidegate.world.requests import Call, Request, RequestId, Watch

POLL_SECONDS = 0.02
"""Maximum delay of an event that no client is waiting for, in seconds."""
MAX_LEAD = Ms(200)
"""How far the clock of the World may run ahead while calls are pending."""
LEAD_STEP = Ms(5)
"""How far it advances at once; a call takes no longer, unless a fault slows it down."""
WatchMessage = WatchEvent | Bookmark | WatchEnded


def current_time() -> Ms:
    """Return the real time, as the start time of a World."""
    return Ms(int(time.time()) * SECOND)


class RealTimeDriver:
    """A driver that submits calls to a World and delivers the messages to the callers."""

    def __init__(self, world: World, *, pace: float = 1.0) -> None:
        self.now = world.now
        self._world = world
        self._pace = pace
        self._request_ids = map(RequestId, count(1))
        self._responses: dict[RequestId, asyncio.Future[Outcome]] = {}
        self._watches: dict[RequestId, asyncio.Queue[WatchMessage]] = {}
        self._submitted = asyncio.Event()

    async def run(self) -> None:
        """Advance the time of the World, forever."""
        clock = asyncio.get_running_loop().time
        started, first = clock(), self.now()
        while True:
            self._submitted.clear()
            target = Ms(first + int((clock() - started) * SECOND * self._pace))
            ahead = (
                min(Ms(self.now() + LEAD_STEP), Ms(target + MAX_LEAD))
                if self._responses
                else target
            )
            for message in await self._world.wait(max(target, ahead, self.now())):
                self._route(message)
            if not self._responses or self.now() >= target + MAX_LEAD:
                await self._sleep()

    async def request(self, request: Request) -> Outcome:
        """Send a request and return its outcome."""
        request_id, response = next(self._request_ids), asyncio.get_running_loop().create_future()
        self._responses[request_id] = response
        self._world.submit(Call(request_id=request_id, request=request))
        self._submitted.set()
        try:
            outcome: Outcome = await response
        finally:
            if self._responses.pop(request_id, None) is not None:
                self._world.cancel(request_id)
        return outcome

    @asynccontextmanager
    async def watch(
        self, request: Watch
    ) -> AsyncIterator[Callable[[], AsyncIterator[WatchMessage]]]:
        """Yield a function that iterates over the messages of a watch until it ends.

        The watch is cancelled when the context is left.
        """
        request_id = next(self._request_ids)
        queue = self._watches[request_id] = asyncio.Queue[WatchMessage]()
        self._world.submit(Call(request_id=request_id, request=request))
        self._submitted.set()

        async def messages() -> AsyncIterator[WatchMessage]:
            while True:
                message = await queue.get()
                yield message
                if isinstance(message, WatchEnded):
                    return

        try:
            yield messages
        finally:
            del self._watches[request_id]
            self._world.cancel(request_id)

    def to_world_time(self, seconds: int) -> Ms:
        """Convert a real duration to a duration in the World."""
        return Ms(int(seconds * SECOND * self._pace))

    def _route(self, message: WatchMessage | Response | TimerFired) -> None:
        match message:
            case Response():
                response = self._responses.pop(message.request_id, None)
                if response is not None and not response.done():
                    response.set_result(message.outcome)
            case WatchEvent() | Bookmark() | WatchEnded():
                if message.request_id in self._watches:
                    self._watches[message.request_id].put_nowait(message)
            case TimerFired():
                pass

    async def _sleep(self) -> None:
        try:
            async with asyncio.timeout(POLL_SECONDS):
                await self._submitted.wait()
        except TimeoutError:
            return
