"""Which world is behind the door."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidegate.model.moment import SECOND, Ms
from tidegate.world.ask import ask
from tidegate.world.calls import Http
from tidegate.world.facts import is_refusal
from tidegate.world.protocol import World
from tidegate.world.refusals import refusal_error

CONNECTING = Ms(15 * SECOND)
WATCHING = Ms(300 * SECOND)


@asynccontextmanager
async def open_world(
    *, kubeconfig: str | None = None, context: str | None = None, watching: Ms = WATCHING
) -> AsyncIterator[World]:
    """One real cluster that answers, or one clear error.

    `watching`: how long servers are asked to keep a watch open; they end it in good order then.
    """
    from tidegate.kube.config import load_target  # noqa: PLC0415 - aiohttp costs 200 ms to import
    from tidegate.kube.world import KubeWorld  # noqa: PLC0415

    target = load_target(kubeconfig=kubeconfig, context=context, environ=os.environ)
    async with KubeWorld({"": target}, watching=watching) as world:
        (outcome,) = await ask(world, Http("/version"), within=CONNECTING)
        if is_refusal(outcome):
            raise refusal_error(outcome, f"connecting to `{target.server}`", where=target.place)
        yield world
