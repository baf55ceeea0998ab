"""Worlds for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tidegate.flows import wiring
from tidegate.flows.sandbox_home import KUBECONFIG
from tidegate.flows.serving import serving
from tidegate.model.moment import Ms
from tidegate.testing.desk import Desk
from tidegate.world.exchange import Exchange
from tidegate.world.facts import is_refusal
from tidegate.world.line import Line
from tidegate.world.protocol import World


@asynccontextmanager
async def real_world(
    *, kubeconfig: Path, context: str | None = None, watching: Ms = wiring.WATCHING
) -> AsyncIterator[World]:
    """The cluster of a kubeconfig."""
    contexts = {"": context}
    async with wiring.open_world(contexts, kubeconfig=str(kubeconfig), watching=watching) as world:
        yield world


@asynccontextmanager
async def served_world(
    behind: World, *, home: Path, pace: float = 1.0, watching: Ms = wiring.WATCHING
) -> AsyncIterator[World]:
    """A world as its clients see it over HTTP, through the same client as a real cluster."""
    async with (
        serving(behind, home, pace=pace),
        real_world(kubeconfig=home / KUBECONFIG, watching=watching) as world,
    ):
        yield world


def sandbox_world(
    *, scenario: Path | None = None, seed: int = 0, watching: Ms = wiring.WATCHING
) -> World:
    """An empty cluster in memory, with virtual time and the faults of a scenario file."""
    return wiring.make_sandbox(scenario=scenario, seed=seed, watching=watching)


async def give(world: World, simulation: wiring.Simulation) -> None:
    """Put into a cluster what a simulated one would have already; new kinds take a moment."""
    desk = Desk(Exchange(Line(world)))
    for body in wiring.given_bodies(simulation):
        await desk.eventually(partial(desk.apply, body), lambda outcome: not is_refusal(outcome))


async def live_in(world: World, simulation: wiring.Simulation, *, until: Ms) -> None:
    """Let our kubelet and operators work on a cluster up to a moment, in its own time."""
    await wiring.set_loose(world, simulation, until=until)
