"""Execution of a coroutine from a synchronous command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

ResultT = TypeVar("ResultT")


def run_async(awaitable: Awaitable[ResultT]) -> ResultT:
    """Run an awaitable and return its result.

    asyncio.run restores the SIGINT handler with signal.getsignal, which formats the result of
    the task: a third of a second for a thousand units. So the task itself returns nothing.
    """
    results: list[ResultT] = []

    async def await_result() -> None:
        results.append(await awaitable)

    asyncio.run(await_result())
    return results[0]
