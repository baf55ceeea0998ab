"""A story told to its end, for a verb that waits for what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Answer = TypeVar("Answer")


def run(story: Awaitable[Answer]) -> Answer:
    """What comes of it.

    Python writes out the result of the task that it runs when it puts back the handler of Ctrl-C
    (signal.getsignal tries to call it by a name): for a thousand units that takes a third of a
    second, and nobody reads it. So the task itself has none.
    """
    found: list[Answer] = []

    async def told() -> None:
        found.append(await story)

    asyncio.run(told())
    return found[0]
