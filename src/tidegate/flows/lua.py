"""Runs scripts about health in workers, for worlds and for verbs.

    async with lua_workers() as lua:
        world = KubeWorld(..., workers={"lua": lua})      # worlds call it in a thread
        reply = await lua.ask(request.argument)           # verbs ask it themselves

This module is also the worker's own program.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidegate.errors import OperatorsError, ProcessError
from tidegate.external.process import Limits
from tidegate.external.serving import serve
from tidegate.flows.scripting import LIMITS, ScriptWorkers, script_workers, why_broken
from tidegate.health.lua.exchange import Broke, write_answer
from tidegate.health.lua.machine import Machine, find_lua


@asynccontextmanager
async def lua_workers(
    *, count: int | None = None, limits: Limits = LIMITS
) -> AsyncIterator[ScriptWorkers]:
    """Workers that run scripts. They start when they are needed and end with the block."""
    if find_lua() is None:
        raise no_lua()
    async with script_workers("tidegate.flows.lua", _broke, count=count, limits=limits) as lua:
        yield lua


def no_lua() -> OperatorsError:
    problem = "health rules in Lua cannot be used: Lua is not installed"
    return OperatorsError("health.lua.missing", problem, hint="install `tidegate[lua]`")


def _broke(error: ProcessError | str) -> bytes:
    return write_answer(Broke(why_broken(error, "script")))


if __name__ == "__main__":
    serve(Machine().answer)
