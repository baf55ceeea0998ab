"""Every promise is made by every world; a test asks for a `client` and gets one of each."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.kubelet import LogEndpoint
from tests.support.log_pods import PrintingPod, in_a_sandbox, on_a_real_server
from tests.support.objects import a_namespace
from tests.support.worlds import real_world, sandbox_world, served_world
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.protocol import World
from tidegate.world.resilient import ResilientWorld

_numbers = itertools.count(1)


@pytest.fixture(params=["sandbox", "served", pytest.param("kube", marks=pytest.mark.kube)])
def world_kind(request: pytest.FixtureRequest) -> str:
    """Which world. A served one is a simulated cluster as its clients see it over HTTP."""
    return str(request.param)


@pytest.fixture
def watching(world_kind: str) -> Ms:
    """How long a watch lasts: so short that it ends in a test. The time of a served world is
    quick."""
    return Ms(SECOND if world_kind == "served" else 5 * SECOND)


@pytest.fixture
def sandbox() -> Sandbox:
    """A simulated cluster for any user."""
    world = sandbox_world(watching=Ms(5 * SECOND))
    assert isinstance(world, Sandbox)
    return world


@pytest.fixture
async def world(
    world_kind: str, watching: Ms, sandbox: Sandbox, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[World]:
    """The World that the test of a promise uses."""
    if world_kind == "sandbox":
        yield sandbox
        return
    if world_kind == "served":
        async with served_world(
            sandbox, state_directory=tmp_path, pace=5, watching=watching
        ) as world:
            yield world
        return
    plane = request.getfixturevalue("plane")
    assert isinstance(plane, ControlPlane)
    kubeconfig = plane.kubeconfig("tidegate")
    async with real_world(kubeconfig=kubeconfig, watching=watching) as world:
        yield world


@pytest.fixture
async def client(world: World) -> ClusterClient:
    """A client at a line, in a namespace of the test's own."""
    name = f"promise-{next(_numbers)}"
    dispatcher = Dispatcher(ResilientWorld(world))
    require_live(await ClusterClient(dispatcher).create(a_namespace(name)))
    return ClusterClient(dispatcher, namespace=name)


@pytest.fixture
def bare(world: World, client: ClusterClient) -> ClusterClient:
    """A client at the world itself, in the same namespace: sees what a line mends."""
    return ClusterClient(Dispatcher(world), namespace=client.namespace)


@pytest.fixture
async def printing(
    world_kind: str, sandbox: Sandbox, request: pytest.FixtureRequest
) -> AsyncIterator[PrintingPod]:
    """Makes pods that print."""
    if world_kind != "kube":
        yield in_a_sandbox(sandbox)
        return
    plane = request.getfixturevalue("plane")
    assert isinstance(plane, ControlPlane)
    certificate, key = plane.authority.for_server("kubelet", names=["127.0.0.1"])
    async with LogEndpoint(certificate, key).running() as endpoint:
        yield on_a_real_server(endpoint)
