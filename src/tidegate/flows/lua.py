"""Runs scripts about health in workers, for worlds and for verbs.

    async with lua_workers() as lua:
        world = KubeWorld(..., workers={"lua": lua})      # worlds call it in a thread
        reply = await lua.ask(request.argument)           # verbs ask it themselves

A script that cannot be ended otherwise costs its worker; the reply says so, and the next one to
ask gets a new worker. This module is also the worker's own program.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError as Withdrawn
from contextlib import asynccontextmanager

from tidegate.errors import OperatorsError, ProcessError
from tidegate.external.process import MIB, Command, Limits
from tidegate.external.serving import serve
from tidegate.external.worker import Workers
from tidegate.health.lua.exchange import Broke, write_answer
from tidegate.health.lua.machine import Machine, find_lua
from tidegate.model.moment import SECOND, Ms

LIMITS = Limits(time=Ms(2 * SECOND), memory=256 * MIB, output=MIB)
"""Scripts have a step limit of their own, which most reach in half a second or never."""
TOO_LARGE = "the object and its script take too much memory"
TOO_LATE = write_answer(Broke("scripts are no longer run"))


class LuaWorkers:
    """Answers questions; from the loop that made it with `ask`, from threads by being called."""

    def __init__(self, workers: Workers, loop: asyncio.AbstractEventLoop) -> None:
        self._workers = workers
        self._loop = loop
        self._asking: set[asyncio.Task[object]] = set()
        self._closed = False

    async def ask(self, question: bytes) -> bytes:
        """A worker's reply. What costs a worker its life is a reply, too."""
        try:
            return await self._workers.ask(question)
        except ProcessError as error:
            return write_answer(Broke(_why(error)))

    def __call__(self, question: bytes) -> bytes:
        asked = asyncio.run_coroutine_threadsafe(self._ask_for(question), self._loop)
        try:
            return asked.result()
        except Withdrawn:
            return TOO_LATE

    async def _ask_for(self, question: bytes) -> bytes:
        """For a thread that waits: it must hear something whatever happens."""
        task = asyncio.current_task()
        if self._closed or task is None:
            return TOO_LATE
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
async def lua_workers(
    *, count: int | None = None, limits: Limits = LIMITS
) -> AsyncIterator[LuaWorkers]:
    """Workers that run scripts. They start when they are needed and end with the block."""
    if find_lua() is None:
        raise no_lua()
    command = Command(argv=(sys.executable, "-I", "-m", __name__))
    amount = count or os.cpu_count() or 1
    async with Workers(command, count=amount, limits=limits) as workers:
        lua = LuaWorkers(workers, asyncio.get_running_loop())
        try:
            yield lua
        finally:
            await lua.close()


def no_lua() -> OperatorsError:
    problem = "health rules in Lua cannot be used: Lua is not installed"
    return OperatorsError("health.lua.missing", problem, hint="install `tidegate[lua]`")


def _why(error: ProcessError) -> str:
    match error.code:
        case "external.worker.timeout":
            return "the script did not end in time"
        case "external.worker.memory":
            return TOO_LARGE
        case _ if "not enough memory" in error.problem:  # Lua's last words
            return TOO_LARGE
        case _:
            return f"the script cannot be run: {error.problem}"


if __name__ == "__main__":
    serve(Machine().answer)
