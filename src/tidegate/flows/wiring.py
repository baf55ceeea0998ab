"""Which world is behind the door."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tidegate.errors import ClusterError, Place
from tidegate.model.moment import SECOND, Ms
from tidegate.world.ask import ask
from tidegate.world.calls import Http
from tidegate.world.facts import NotServed, Outcome, Said, is_refusal
from tidegate.world.protocol import World
from tidegate.world.refusals import refusal_error


class _Version(msgspec.Struct, rename="camel"):
    git_version: str


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
        _check_version(outcome, server=target.server, where=target.place)
        yield world


def _check_version(outcome: Outcome, *, server: str, where: Place) -> None:
    """Raise what is wrong with the way to a cluster, before anything is asked of it."""
    if is_refusal(outcome) and not isinstance(outcome, NotServed):
        raise refusal_error(outcome, f"connecting to `{server}`", where=where)
    try:
        msgspec.json.decode(outcome.body if isinstance(outcome, Said) else b"", type=_Version)
    except msgspec.DecodeError:
        problem = f"what answers at `{server}` is not a Kubernetes API server"
        hint = "check `server` of this cluster"
        raise ClusterError("cluster.foreign", problem, where=where, hint=hint) from None


def make_sandbox(*, scenario: Path | None = None, seed: int = 0, watching: Ms = WATCHING) -> World:
    """One empty simulated cluster; a seed that is given wins over the scenario's."""
    from tidegate.sandbox.cluster import Timing  # noqa: PLC0415 - only who simulates pays for it
    from tidegate.sandbox.scenario import Scenario, read_scenario  # noqa: PLC0415
    from tidegate.sandbox.world import Sandbox  # noqa: PLC0415

    story = read_scenario(scenario.read_bytes(), str(scenario)) if scenario else Scenario()
    return Sandbox(seed=seed or story.seed, faults=story.faults, timing=Timing(watching=watching))
