"""Evaluates expressions in workers, for worlds and for verbs. Also the worker's own program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidegate.errors import ProcessError
from tidegate.external.process import Limits
from tidegate.external.serving import serve
from tidegate.flows.scripting import LIMITS, ScriptWorkers, script_workers, why_broken
from tidegate.health.cel.exchange import Failing, write_cel_answer
from tidegate.health.cel.machine import CelMachine


@asynccontextmanager
async def cel_workers(
    *, count: int | None = None, limits: Limits = LIMITS
) -> AsyncIterator[ScriptWorkers]:
    """Workers that evaluate expressions. They start when they are needed."""
    async with script_workers("tidegate.flows.cel", _broke, count=count, limits=limits) as cel:
        yield cel


def _broke(error: ProcessError | str) -> bytes:
    return write_cel_answer(Failing(0, why_broken(error, "expression")))


if __name__ == "__main__":
    serve(CelMachine().answer)
