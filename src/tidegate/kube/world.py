"""The World of real clusters.

Each call is a task that ends with messages; `wait` is the only place where they are taken. The
clock is that of the machine, but never runs backwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Self

from tidegate.kube.access.context import KubeTarget
from tidegate.kube.cluster import KubeCluster
from tidegate.kube.transport import InFlightRequest, Transport
from tidegate.model.times import Ms
from tidegate.world.messages import (
    Message,
    NotServed,
    Outcome,
    RawResponse,
    Response,
    ServerError,
    TimerFired,
)
from tidegate.world.requests import Call, RequestId, RunWorker, Watch

Worker = Callable[[bytes], bytes]
"""A function that runs in a thread of this machine: bytes in, bytes out."""


class KubeWorld:
    """The clusters of these targets, by the cluster names that calls use."""

    def __init__(
        self,
        targets: Mapping[str, KubeTarget],
        *,
        watch_timeout: Ms,
        workers: Mapping[str, Worker] | None = None,
    ) -> None:
        self._targets = targets
        self._watch_timeout = watch_timeout
        self._workers = workers or {}
        self._clusters: dict[str, KubeCluster] = {}
        self._in_flight: dict[RequestId, tuple[asyncio.Task[None], InFlightRequest]] = {}
        self._messages: list[Message] = []
        self._wakeup = asyncio.Event()
        self._is_waiting = False
        self._crash: BaseException | None = None
        self._exit_stack = AsyncExitStack()
        self._epoch_ms = time.time_ns() // 1_000_000 - _monotonic_ms()

    async def __aenter__(self) -> Self:
        for name, target in self._targets.items():
            transport = await self._exit_stack.enter_async_context(Transport(target))
            self._clusters[name] = KubeCluster(transport, watch_timeout=self._watch_timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [task for task, _ in self._in_flight.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._exit_stack.aclose()

    def now(self) -> Ms:
        return Ms(self._epoch_ms + _monotonic_ms())

    def submit(self, call: Call) -> None:
        in_flight = InFlightRequest(call.identity)
        task = asyncio.create_task(self._run_call(call, in_flight), name=f"call {call.request_id}")
        task.add_done_callback(self._on_task_done)
        self._in_flight[call.request_id] = (task, in_flight)

    def cancel(self, request_id: RequestId) -> bool:
        task, in_flight = self._in_flight.pop(request_id, (None, InFlightRequest(sent=True)))
        if task is not None:
            task.cancel()
        self._messages = [
            message
            for message in self._messages
            if getattr(message, "request_id", None) != request_id
        ]
        return not in_flight.sent

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        if self._is_waiting:
            raise RuntimeError("a world has one waiter")
        self._is_waiting = True
        try:
            await self._wait_for_messages(until)
        finally:
            self._is_waiting = False
        if self._crash is not None:
            raise self._crash
        messages, self._messages = tuple(self._messages), []
        return messages or (TimerFired(),)

    def wake(self) -> None:
        self._wakeup.set()

    async def _wait_for_messages(self, until: Ms | None) -> None:
        if self._messages:
            return
        self._wakeup.clear()
        remaining = None if until is None else max(0, until - self.now()) / 1_000
        try:
            async with asyncio.timeout(remaining):
                await self._wakeup.wait()
        except TimeoutError:
            return

    async def _run_call(self, call: Call, in_flight: InFlightRequest) -> None:
        match call.request:
            case Watch():
                await self._run_watch(call, call.request, in_flight)
            case _:
                outcome = await self._perform(call, in_flight)
                self._in_flight.pop(call.request_id, None)
                self._deliver(Response(call.request_id, outcome))

    async def _perform(self, call: Call, in_flight: InFlightRequest) -> Outcome:
        if isinstance(call.request, RunWorker):
            in_flight.sent = True
            return await self._run_worker(call.request)
        if isinstance(call.request, Watch):
            raise TypeError(call.request)
        return await self._clusters[call.cluster].perform(call.request, in_flight)

    async def _run_watch(self, call: Call, watch: Watch, in_flight: InFlightRequest) -> None:
        cluster = self._clusters[call.cluster]
        async with aclosing(cluster.watch(call.request_id, watch, in_flight)) as events:
            async for message in events:
                self._deliver(message)
        self._in_flight.pop(call.request_id, None)

    async def _run_worker(self, request: RunWorker) -> Outcome:
        worker = self._workers.get(request.name)
        if worker is None:
            return NotServed(f"unsupported request `{request.name}`")
        try:
            return RawResponse(await asyncio.to_thread(worker, request.argument))
        except Exception as error:  # noqa: BLE001 - a worker runs strangers' work
            return ServerError(0, type(error).__name__, str(error))

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """Pass on the exception of a task to `wait`: it is a bug of Tidegate."""
        if not task.cancelled() and task.exception() is not None:
            self._crash = task.exception()
            self._wakeup.set()

    def _deliver(self, message: Message) -> None:
        self._messages.append(message)
        self._wakeup.set()


def _monotonic_ms() -> int:
    """Return milliseconds of a clock that cannot be set and continues while the machine sleeps.

    If the clock stopped during sleep, a process would believe that its heartbeat is recent.
    """
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1_000_000
