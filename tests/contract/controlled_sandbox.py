"""Clusters with controllers and a kubelet, for facts that hold on all of them.

The real one has the controllers and the scheduler of Kubernetes and runs no pods itself. If a fact
needs a kubelet, the one of the sandbox runs on it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from plane import ControlPlane
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import ACCOUNT, a_namespace
from tests.support.worlds import real_world, run_controllers, served_world
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import LiveObject, Ref
from tidegate.model.times import MINUTE, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.protocol import World
from tidegate.world.resilient import ResilientWorld

_numbers = itertools.count(1)


PACE = 5
"""Of the time of a served world: what lasts five seconds can still be seen."""


@asynccontextmanager
async def a_living_sandbox(*, served: bool, state_directory: Path) -> AsyncIterator[ClusterClient]:
    """`served`: as its clients see it over HTTP."""
    world = build_sandbox(SimulationConfig())
    if not served:
        yield await _settle_in(world)
        return
    async with served_world(world, state_directory=state_directory, pace=PACE) as seen:
        yield await _settle_in(seen)


@asynccontextmanager
async def a_real_cluster(plane: ControlPlane, *, has_kubelet: bool) -> AsyncIterator[ClusterClient]:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        client = await _settle_in(world)
        if not has_kubelet:
            yield client
            return
        async with _our_kubelet(plane):
            yield client


@asynccontextmanager
async def _our_kubelet(plane: ControlPlane) -> AsyncIterator[None]:
    """Runs in parallel with the test, on a separate connection."""
    async with (
        real_world(kubeconfig=plane.kubeconfig("tidegate")) as world,
        asyncio.TaskGroup() as group,
    ):
        until = Ms(world.now() + 3 * MINUTE)
        task = group.create_task(
            run_controllers(world, SimulationConfig(), until=until), name="kubelet"
        )
        try:
            yield
        finally:
            task.cancel()


async def _settle_in(world: World) -> ClusterClient:
    """A client in a namespace of its own, in which pods can be made."""
    name = f"living-{next(_numbers)}"
    dispatcher = Dispatcher(ResilientWorld(world))
    require_live(await ClusterClient(dispatcher).create(a_namespace(name)))
    client = ClusterClient(dispatcher, namespace=name)
    account = Ref(ACCOUNT, name, "default")
    await client.settled(account, lambda live: isinstance(live, LiveObject))
    return client
