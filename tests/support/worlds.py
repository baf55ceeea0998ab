"""Worlds for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tests.support.cluster_client import ClusterClient
from tests.support.remote_controllers import RemoteControllers
from tidegate.clusters.connect import WATCH_TIMEOUT, open_world
from tidegate.clusters.sandboxes import (
    KUBECONFIG,
    SimulationConfig,
    load_knowledge,
    load_profile,
    load_scenario,
    preinstalled_objects,
)
from tidegate.model.times import Ms
from tidegate.sandbox.cluster import ServerTiming
from tidegate.sandbox.controller_set import build_kubelet_and_operators
from tidegate.sandbox.controllers.storage.volumes import provisioner_controller
from tidegate.sandbox.kinds import WATCHED_KINDS
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


async def preload(world: World, simulation: SimulationConfig) -> None:
    """Put into a cluster what a simulated one would have already; new kinds take a moment."""
    client = ClusterClient(Dispatcher(ResilientWorld(world)))
    for body in preinstalled_objects(simulation):
        await client.eventually(partial(client.apply, body), lambda outcome: not is_error(outcome))


async def run_controllers(world: World, simulation: SimulationConfig, *, until: Ms) -> None:
    """Run our kubelet, provisioner and operators on a cluster up to a time, in its own time.

    A real cluster has its own core controllers. An operator works as soon as its workload runs.
    """
    profile = load_profile(simulation).with_rules(load_scenario(simulation).behaviours)
    knowledge = load_knowledge(simulation)
    controllers = (
        *build_kubelet_and_operators(profile, knowledge, record_pulls=True),
        provisioner_controller(),
    )
    dispatcher = Dispatcher(ResilientWorld(world))
    await RemoteControllers(dispatcher, controllers, kinds=WATCHED_KINDS).run(until)
