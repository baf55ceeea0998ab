"""CEL expressions in worker processes. Also the program of the worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidegate.errors import ProcessError
from tidegate.external.process import Limits
from tidegate.external.worker_main import serve
from tidegate.health.cel.interpreter import CelInterpreter
from tidegate.health.cel.messages import CelEvaluationError, encode_cel_response
from tidegate.workers.scripts import LIMITS, ScriptWorkers, failure_reason, script_workers


@asynccontextmanager
async def cel_workers(
    *, count: int | None = None, limits: Limits = LIMITS
) -> AsyncIterator[ScriptWorkers]:
    """Yield workers that evaluate CEL expressions. They start on first use."""
    async with script_workers(
        "tidegate.workers.cel", _failure_reply, count=count, limits=limits
    ) as cel:
        yield cel


def _failure_reply(error: ProcessError | str) -> bytes:
    return encode_cel_response(CelEvaluationError(0, failure_reason(error, "expression")))


if __name__ == "__main__":
    serve(CelInterpreter().answer)
