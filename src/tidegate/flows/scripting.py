"""Strangers' scripts and expressions, run in workers for worlds and for verbs.

A script that cannot be ended otherwise costs its worker; the reply says so, and the next one to ask
gets a new worker.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError as Withdrawn
from contextlib import asynccontextmanager

from tidegate.errors import ProcessError
from tidegate.external.process import MIB, Command, Limits
from tidegate.external.worker import Workers
from tidegate.model.moment import SECOND, Ms

LIMITS = Limits(time=Ms(2 * SECOND), memory=256 * MIB, output=MIB)
"""Scripts have a step limit of their own, which most reach in half a second or never."""
TOO_LATE = "scripts are no longer run"


class ScriptWorkers:
    """Answers questions; from the loop that made it with `ask`, from threads by being called.

    `broke` makes an answer of what costs a worker its life.
    """

    def __init__(
        self,
        workers: Workers,
        loop: asyncio.AbstractEventLoop,
        broke: Callable[[ProcessError | str], bytes],
    ) -> None:
        self._workers = workers
        self._loop = loop
        self._broke = broke
        self._asking: set[asyncio.Task[object]] = set()
        self._closed = False

    async def ask(self, question: bytes) -> bytes:
        """A worker's reply. What costs a worker its life is a reply, too."""
        try:
            return await self._workers.ask(question)
        except ProcessError as error:
            return self._broke(error)

    def __call__(self, question: bytes) -> bytes:
        asked = asyncio.run_coroutine_threadsafe(self._ask_for(question), self._loop)
        try:
            return asked.result()
        except Withdrawn:
            return self._broke(TOO_LATE)

    async def _ask_for(self, question: bytes) -> bytes:
        """For a thread that waits: it must hear something whatever happens."""
        task = asyncio.current_task()
        if self._closed or task is None:
            return self._broke(TOO_LATE)
        self._asking.add(task)
        try:
            return await self.ask(question)
        finally:
            self._asking.discard(task)

    async def close(self) -> None:
        """Let no thread wait any longer: it would hold up the end of the program."""
        self._closed = True
        waiting = set(self._asking)
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting)


@asynccontextmanager
async def script_workers(
    module: str,
    broke: Callable[[ProcessError | str], bytes],
    *,
    count: int | None = None,
    limits: Limits = LIMITS,
) -> AsyncIterator[ScriptWorkers]:
    """Workers that run a module. They start when they are needed and end with the block."""
    command = Command(argv=(sys.executable, "-I", "-m", module))
    amount = count or os.cpu_count() or 1
    async with Workers(command, count=amount, limits=limits) as workers:
        scripts = ScriptWorkers(workers, asyncio.get_running_loop(), broke)
        try:
            yield scripts
        finally:
            await scripts.close()


def why_broken(error: ProcessError | str, what: str) -> str:
    """Why a script or an expression said nothing."""
    if isinstance(error, str):
        return error
    match error.code:
        case "external.worker.timeout":
            return f"the {what} did not end in time"
        case "external.worker.memory":
            return f"the object and its {what} take too much memory"
        case _ if "not enough memory" in error.problem:  # Lua's last words
            return f"the object and its {what} take too much memory"
        case _:
            return f"the {what} cannot be run: {error.problem}"
