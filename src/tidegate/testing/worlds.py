"""Worlds for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tidegate.flows.wiring import (
    WATCHING,
    Simulation,
    given_bodies,
    make_sandbox,
    open_world,
    set_loose,
)
from tidegate.model.moment import Ms
from tidegate.testing.desk import Desk
from tidegate.world.exchange import Exchange
from tidegate.world.facts import is_refusal
from tidegate.world.line import Line
from tidegate.world.protocol import World


@asynccontextmanager
async def real_world(
    *, kubeconfig: Path, context: str | None = None, watching: Ms = WATCHING
) -> AsyncIterator[World]:
    """The cluster of a kubeconfig."""
    contexts = {"": context}
    async with open_world(contexts, kubeconfig=str(kubeconfig), watching=watching) as world:
        yield world


def sandbox_world(*, scenario: Path | None = None, seed: int = 0, watching: Ms = WATCHING) -> World:
    """An empty cluster in memory, with virtual time and the faults of a scenario file."""
    return make_sandbox(scenario=scenario, seed=seed, watching=watching)


async def give(world: World, simulation: Simulation) -> None:
    """Put into a cluster what a simulated one would have already; new kinds take a moment."""
    desk = Desk(Exchange(Line(world)))
    for body in given_bodies(simulation):
        await desk.eventually(partial(desk.apply, body), lambda outcome: not is_refusal(outcome))


async def live_in(world: World, simulation: Simulation, *, until: Ms) -> None:
    """Let our kubelet and operators work on a cluster up to a moment, in its own time."""
    await set_loose(world, simulation, until=until)
