"""Untrusted Lua scripts and CEL expressions, evaluated in worker processes.

A script that cannot be stopped otherwise costs its worker; the reply is an error, and the next
request starts a new worker.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError as FutureCancelledError
from contextlib import asynccontextmanager

from tidegate.errors import ProcessError
from tidegate.external.process import MIB, Command, Limits
from tidegate.external.worker import Workers
from tidegate.model.times import SECOND, Ms

LIMITS = Limits(time=Ms(2 * SECOND), memory=256 * MIB, output=MIB)
"""Limits of one request.

Scripts also have a step limit, which most reach in half a second or never.
"""
CLOSED_MESSAGE = "scripts are no longer run"


class ScriptWorkers:
    """Workers that answer requests: in an event loop (`request`), or from threads (call it).

    `on_failure` builds the reply for an error that killed a worker.
    """

    def __init__(
        self,
        workers: Workers,
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[ProcessError | str], bytes],
    ) -> None:
        self._workers = workers
        self._loop = loop
        self._on_failure = on_failure
        self._pending: set[asyncio.Task[object]] = set()
        self._closed = False

    async def request(self, payload: bytes) -> bytes:
        """Return the reply of a worker. An error that kills the worker is a reply, too."""
        try:
            return await self._workers.request(payload)
        except ProcessError as error:
            return self._on_failure(error)

    def __call__(self, payload: bytes) -> bytes:
        future = asyncio.run_coroutine_threadsafe(self._request_from_thread(payload), self._loop)
        try:
            return future.result()
        except FutureCancelledError:
            return self._on_failure(CLOSED_MESSAGE)

    async def _request_from_thread(self, payload: bytes) -> bytes:
        """Return the reply for a waiting thread, which must get one in any case."""
        task = asyncio.current_task()
        if self._closed or task is None:
            return self._on_failure(CLOSED_MESSAGE)
        self._pending.add(task)
        try:
            return await self.request(payload)
        finally:
            self._pending.discard(task)

    async def close(self) -> None:
        """Cancel pending requests: a waiting thread would block the exit of the program."""
        self._closed = True
        pending = set(self._pending)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)


@asynccontextmanager
async def script_workers(
    module: str,
    on_failure: Callable[[ProcessError | str], bytes],
    *,
    count: int | None = None,
    limits: Limits = LIMITS,
) -> AsyncIterator[ScriptWorkers]:
    """Yield workers that run a module. They start on first use and stop with the block."""
    command = Command(argv=(sys.executable, "-I", "-m", module))
    worker_count = count or os.cpu_count() or 1
    async with Workers(command, count=worker_count, limits=limits) as workers:
        scripts = ScriptWorkers(workers, asyncio.get_running_loop(), on_failure)
        try:
            yield scripts
        finally:
            await scripts.close()


def failure_reason(error: ProcessError | str, noun: str) -> str:
    """Return why a script or an expression has no result."""
    if isinstance(error, str):
        return error
    match error.code:
        case "external.worker.timeout":
            return f"the {noun} timed out"
        case "external.worker.memory":
            return f"the {noun} needs too much memory"
        case _ if "not enough memory" in error.problem:  # Lua's last words
            return f"the {noun} needs too much memory"
        case _:
            return f"cannot run the {noun}: {error.problem}"
