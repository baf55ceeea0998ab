"""The control plane that engine and bare loops share, and how each of them reaches it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from plane import ControlPlane
from plane.audit import AuditEntry, read_audit
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.rollout_runs import Run, roll_out
from tidegate.clusters.connect import open_world
from tidegate.kube.access.context import KubeTarget
from tidegate.kube.config import load_target
from tidegate.kube.tls import make_context
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.plan import Plan
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld

USER = "tidegate"


@dataclass(frozen=True, slots=True)
class Bench:
    plane: ControlPlane

    @property
    def target(self) -> KubeTarget:
        return load_target(kubeconfig=str(self.plane.kubeconfig(USER)), environ=os.environ)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """The client of a bare loop."""
        connector = aiohttp.TCPConnector(ssl=make_context(self.target, None), limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield session

    async def make_namespace(self, name: str) -> None:
        async with open_world({"": None}, kubeconfig=str(self.plane.kubeconfig(USER))) as world:
            body: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            require_live(await ClusterClient(Dispatcher(ResilientWorld(world))).apply(body))

    async def roll_out(self, plan: Plan) -> Run:
        async with open_world({"": None}, kubeconfig=str(self.plane.kubeconfig(USER))) as world:
            run = await roll_out(world, plan)
        if run.result != "passed":
            raise RuntimeError(run.events_of()[-5:])
        return run

    def entries(self) -> Iterator[AuditEntry]:
        """What our user did up to now."""
        return (item for item in read_audit(self.plane.audit_log) if item.user.username == USER)
