"""Worlds for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tests.support.cluster_client import ClusterClient
from tidegate.clusters import sandboxes
from tidegate.clusters.connect import WATCH_TIMEOUT, open_world
from tidegate.clusters.sandboxes import KUBECONFIG
from tidegate.model.times import Ms
from tidegate.sandbox.cluster import ServerTiming
from tidegate.sandbox.scenario import Scenario, read_scenario
from tidegate.sandbox.world import Sandbox
from tidegate.simulation.server import serve_world
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import is_error
from tidegate.world.protocol import World
from tidegate.world.resilient import ResilientWorld


@asynccontextmanager
async def real_world(
    *, kubeconfig: Path, context: str | None = None, watching: Ms = WATCH_TIMEOUT
) -> AsyncIterator[World]:
    """The cluster of a kubeconfig."""
    contexts = {"": context}
    async with open_world(contexts, kubeconfig=str(kubeconfig), watch_timeout=watching) as world:
        yield world


@asynccontextmanager
async def served_world(
    inner: World, *, state_directory: Path, pace: float = 1.0, watching: Ms = WATCH_TIMEOUT
) -> AsyncIterator[World]:
    """A world as its clients see it over HTTP, through the same client as a real cluster."""
    async with (
        serve_world(inner, state_directory, pace=pace),
        real_world(kubeconfig=state_directory / KUBECONFIG, watching=watching) as world,
    ):
        yield world


def sandbox_world(
    *, scenario: Path | None = None, seed: int = 0, watching: Ms = WATCH_TIMEOUT
) -> World:
    """An empty cluster in memory, with virtual time and the faults of a scenario file."""
    parsed = read_scenario(scenario.read_bytes(), str(scenario)) if scenario else Scenario()
    faults = (*parsed.faults, *parsed.edits)
    timing = ServerTiming(watch_timeout=watching)
    return Sandbox(seed=seed or parsed.seed, faults=faults, timing=timing)


async def preload(world: World, simulation: sandboxes.SimulationConfig) -> None:
    """Put into a cluster what a simulated one would have already; new kinds take a moment."""
    client = ClusterClient(Dispatcher(ResilientWorld(world)))
    for body in sandboxes.preinstalled_objects(simulation):
        await client.eventually(partial(client.apply, body), lambda outcome: not is_error(outcome))


async def run_controllers(
    world: World, simulation: sandboxes.SimulationConfig, *, until: Ms
) -> None:
    """Let our kubelet and operators work on a cluster up to a moment, in its own time."""
    await sandboxes.run_remote_controllers(world, simulation, until=until)
