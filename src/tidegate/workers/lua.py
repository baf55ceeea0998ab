"""Lua health scripts in worker processes.

    async with lua_workers() as lua:
        world = KubeWorld(..., workers={"lua": lua})      # worlds call it in a thread
        reply = await lua.request(request.argument)       # commands call it themselves

This module is also the program of the worker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidegate.errors import KnowledgeError, ProcessError
from tidegate.external.process import Limits
from tidegate.external.worker_main import serve
from tidegate.health.lua.interpreter import LuaInterpreter, find_lua
from tidegate.health.lua.messages import ScriptFailed, encode_lua_response
from tidegate.workers.scripts import LIMITS, ScriptWorkers, failure_reason, script_workers


@asynccontextmanager
async def lua_workers(
    *, count: int | None = None, limits: Limits = LIMITS
) -> AsyncIterator[ScriptWorkers]:
    """Yield workers that run Lua scripts. They start on first use and stop with the block.

    Raises OperatorsError where Lua is not installed.
    """
    if find_lua() is None:
        raise lua_missing_error()
    async with script_workers(
        "tidegate.workers.lua", _failure_reply, count=count, limits=limits
    ) as lua:
        yield lua


def lua_missing_error() -> KnowledgeError:
    """Return the error for a missing Lua library."""
    problem = "cannot use Lua health checks: Lua is not installed"
    return KnowledgeError("health.lua.missing", problem, hint="install `tidegate[lua]`")


def _failure_reply(error: ProcessError | str) -> bytes:
    return encode_lua_response(ScriptFailed(failure_reason(error, "script")))


if __name__ == "__main__":
    serve(LuaInterpreter().answer)
