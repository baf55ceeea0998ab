"""Real clusters behind the door.

Each call is a task of its own that ends in facts; `wait` is the one place where they are taken.
The clock is the machine's, but never runs backwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Self

from tidegate.kube.access.context import KubeTarget
from tidegate.kube.cluster import KubeCluster
from tidegate.kube.transport import Flight, Transport
from tidegate.model.moment import Ms
from tidegate.world.calls import Call, Local, Ticket, Watch
from tidegate.world.facts import Answer, Due, Fact, Failed, NotServed, Outcome, Said

Worker = Callable[[bytes], bytes]


class KubeWorld:
    """The clusters of these targets, by the names that calls use."""

    def __init__(
        self,
        targets: Mapping[str, KubeTarget],
        *,
        watching: Ms,
        workers: Mapping[str, Worker] | None = None,
    ) -> None:
        self._targets = targets
        self._watching = watching
        self._workers = workers or {}
        self._clusters: dict[str, KubeCluster] = {}
        self._flights: dict[Ticket, tuple[asyncio.Task[None], Flight]] = {}
        self._facts: list[Fact] = []
        self._arrived = asyncio.Event()
        self._waiting = False
        self._crash: BaseException | None = None
        self._exits = AsyncExitStack()
        self._epoch_ms = time.time_ns() // 1_000_000 - _ticks()

    async def __aenter__(self) -> Self:
        for name, target in self._targets.items():
            transport = await self._exits.enter_async_context(Transport(target))
            self._clusters[name] = KubeCluster(transport, watching=self._watching)
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [task for task, _ in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._exits.aclose()

    def now(self) -> Ms:
        return Ms(self._epoch_ms + _ticks())

    def submit(self, call: Call) -> None:
        flight = Flight(call.identity)
        task = asyncio.create_task(self._carry(call, flight), name=f"call {call.ticket}")
        task.add_done_callback(self._landed)
        self._flights[call.ticket] = (task, flight)

    def cancel(self, ticket: Ticket) -> bool:
        task, flight = self._flights.pop(ticket, (None, Flight(sent=True)))
        if task is not None:
            task.cancel()
        self._facts = [fact for fact in self._facts if getattr(fact, "ticket", None) != ticket]
        return not flight.sent

    async def wait(self, until: Ms | None) -> tuple[Fact, ...]:
        if self._waiting:
            raise RuntimeError("a world has one waiter")
        self._waiting = True
        try:
            await self._arrival(until)
        finally:
            self._waiting = False
        if self._crash is not None:
            raise self._crash
        facts, self._facts = tuple(self._facts), []
        return facts or (Due(),)

    def wake(self) -> None:
        self._arrived.set()

    async def _arrival(self, until: Ms | None) -> None:
        if self._facts:
            return
        self._arrived.clear()
        remaining = None if until is None else max(0, until - self.now()) / 1_000
        try:
            async with asyncio.timeout(remaining):
                await self._arrived.wait()
        except TimeoutError:
            return

    async def _carry(self, call: Call, flight: Flight) -> None:
        match call.request:
            case Watch():
                await self._follow(call, call.request, flight)
            case _:
                outcome = await self._perform(call, flight)
                self._flights.pop(call.ticket, None)
                self._tell(Answer(call.ticket, outcome))

    async def _perform(self, call: Call, flight: Flight) -> Outcome:
        if isinstance(call.request, Local):
            flight.sent = True
            return await self._work(call.request)
        if isinstance(call.request, Watch):
            raise TypeError(call.request)
        return await self._clusters[call.cluster].perform(call.request, flight)

    async def _follow(self, call: Call, watch: Watch, flight: Flight) -> None:
        cluster = self._clusters[call.cluster]
        async with aclosing(cluster.watch(call.ticket, watch, flight)) as events:
            async for fact in events:
                self._tell(fact)
        self._flights.pop(call.ticket, None)

    async def _work(self, local: Local) -> Outcome:
        worker = self._workers.get(local.name)
        if worker is None:
            return NotServed(f"nobody does `{local.name}` here")
        try:
            return Said(await asyncio.to_thread(worker, local.argument))
        except Exception as error:  # noqa: BLE001 - a worker runs strangers' work
            return Failed(0, type(error).__name__, str(error))

    def _landed(self, task: asyncio.Task[None]) -> None:
        """A task that ends in an exception is a bug of ours: whoever waits shall see it."""
        if not task.cancelled() and task.exception() is not None:
            self._crash = task.exception()
            self._arrived.set()

    def _tell(self, fact: Fact) -> None:
        self._facts.append(fact)
        self._arrived.set()


def _ticks() -> int:
    """Milliseconds that nobody sets, and that go on while the machine sleeps, where it can tell.

    Whoever slept must not believe that it has just shown others that it lives.
    """
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1_000_000
