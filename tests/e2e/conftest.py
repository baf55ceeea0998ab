"""What tests against the real control plane share."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.dialect_kinds import serve
from tests.support.faulty_proxy import FaultyProxy
from tests.support.worlds import real_world
from tidegate.documents.dump import to_json
from tidegate.model.k8s.objects import Json
from tidegate.model.times import Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.reflector import IDLE_TIMEOUT
from tidegate.world.resilient import ResilientWorld

_numbers = itertools.count(1)


class Site:
    """A control plane, a faulty proxy before it, and a place for kubeconfigs."""

    def __init__(self, plane: ControlPlane, proxy: FaultyProxy, folder: Path) -> None:
        self.plane = plane
        self.proxy = proxy
        self._folder = folder

    def kubeconfig(
        self,
        *,
        url: str = "",
        user: Mapping[str, Json] | None = None,
        cluster: Mapping[str, Json] | None = None,
    ) -> Path:
        """For the control plane or its proxy, and for any user."""
        place: dict[str, Json] = {
            "server": url or self.plane.server,
            "certificate-authority": str(self.plane.ca),
            **(cluster or {}),
        }
        credentials = {"token": self.plane.token("tidegate")} if user is None else user
        body: Json = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {**place}}],
            "users": [{"name": "tester", "user": {**credentials}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "tester"}}],
        }
        path = self._folder / f"kubeconfig-{next(_numbers)}"
        path.write_bytes(to_json(body))
        return path

    @asynccontextmanager
    async def client(
        self, kubeconfig: Path, *, quiet: Ms = IDLE_TIMEOUT
    ) -> AsyncIterator[ClusterClient]:
        """A client at a line through this kubeconfig, in a namespace of its own."""
        name = f"e2e-{next(_numbers)}"
        namespace: dict[str, Json] = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name},
        }
        async with real_world(kubeconfig=kubeconfig) as world:
            dispatcher = Dispatcher(ResilientWorld(world, idle_timeout=quiet))
            require_live(await ClusterClient(dispatcher).apply(namespace))
            yield ClusterClient(dispatcher, namespace=name)


def a_config_map(name: str = "web", **data: str) -> dict[str, Json]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"test": "yes"}},
        "data": {**data},
    }


@asynccontextmanager
async def a_site(plane: ControlPlane, folder: Path) -> AsyncIterator[Site]:
    """A control plane with a faulty proxy before it."""
    certificate, key = plane.authority.for_server(f"proxy-{next(_numbers)}", names=["127.0.0.1"])
    proxy = FaultyProxy(plane.server, plane.ca, certificate, key)
    async with proxy.running():
        yield Site(plane, proxy, folder)


@pytest.fixture
async def site(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Site]:
    """The shared control plane, with a faulty proxy before it that as yet does no harm."""
    async with a_site(plane, tmp_path) as site:
        yield site


@pytest.fixture(scope="module")
def own_plane() -> Iterator[ControlPlane]:
    """A control plane for tests that stop a part of it."""
    with ControlPlane.start() as running:
        yield running


@pytest.fixture
async def own_site(own_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Site]:
    async with a_site(own_plane, tmp_path) as site:
        yield site


@pytest.fixture(scope="module")
def served_plane() -> Iterator[ControlPlane]:
    """A control plane that serves the kinds of Argo CD and Flux: units say there how they are."""
    with ControlPlane.start() as running:
        asyncio.run(serve(running))
        yield running


@pytest.fixture(scope="module")
def platform_plane() -> Iterator[ControlPlane]:
    """For a whole platform: it serves the kinds of Argo CD and Flux, and runs no pods itself."""
    with ControlPlane.start(runs_pods=False) as running:
        asyncio.run(serve(running))
        yield running
