"""A namespace of a real cluster with files to roll out, and `tidegate` as a program for both.

Its pods are run by our kubelet, and its databases are made by our operator. What was written is
read from the server's audit log.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from plane import ControlPlane
from plane.audit import AuditEntry, read_audit
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.rollout_audit import WRITES
from tests.support.worlds import preload, real_world, run_controllers
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.model.k8s.json_fields import get_int, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json
from tidegate.model.times import MINUTE, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "examples" / "first"
PROFILE = "name: quick\ndurations: {pull: 0s, start: 0s, ready: 0s, run: 1s, dial: 1s, stop: 0s}\n"
WAVES = {
    "secrets/shop-credentials": -3,
    "configmaps/shop-settings": -3,
    "services/db": -2,
    "services/redis": -2,
    "deployments/redis": -2,
    "statefulsets/db": -2,
    "jobs/migrate": -1,
    "services/shop": 0,
    "deployments/shop": 0,
    "ingresses/shop": 1,
}
_numbers = itertools.count(1)


class CommandResult(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str


class NamespaceStage:
    """A namespace, the files of the shop, and commands for both."""

    def __init__(self, plane: ControlPlane, namespace: str, shop: Path) -> None:
        self.plane = plane
        self.namespace = namespace
        self.shop = shop

    async def start(self, verb: str, *words: str) -> Process:
        login = str(self.plane.kubeconfig("tidegate"))
        place = ("--kubeconfig", login, "--context", "plane", "--namespace", self.namespace)
        command = (sys.executable, "-m", "tidegate", verb, str(self.shop), *place, *words)
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.shop.parent)}
        return await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, env=environment, stdout=PIPE, stderr=PIPE
        )

    async def run(self, verb: str, *words: str) -> CommandResult:
        process = await self.start(verb, *words)
        stdout, stderr = await process.communicate()
        assert process.returncode is not None
        return CommandResult(process.returncode, stdout.decode(), stderr.decode())

    def slow_database(self, seconds: int) -> None:
        path = self.shop / "database.yaml"
        old = "initialDelaySeconds: 85"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, f"initialDelaySeconds: {seconds}"))

    def writes(self) -> list[AuditEntry]:
        """All that the command wrote anywhere, or tried to."""
        return [
            entry
            for entry in read_audit(self.plane.audit_log)
            if entry.user.username == "tidegate"
            and entry.verb in WRITES
            and "dryRun=All" not in entry.request_uri
        ]

    def here(self, entries: list[AuditEntry]) -> list[tuple[str, str, str]]:
        """Verb, object and moment of those in our namespace, in the order of the requests."""
        own_items = [entry for entry in entries if entry.object_ref.namespace == self.namespace]
        own_items.sort(key=lambda item: item.request_received_timestamp)
        return [
            (
                item.verb,
                f"{item.object_ref.resource}/{item.object_ref.name}",
                item.request_received_timestamp,
            )
            for item in own_items
        ]

    def settled(self, name: str) -> str:
        """When the status of an object first reported that it is healthy."""
        resource, _, name = name.partition("/")
        for entry in read_audit(self.plane.audit_log):
            target = entry.object_ref
            about = (target.namespace, target.resource, target.subresource, target.name)
            if about == (self.namespace, resource, "status", name):
                body: dict[str, Json] = msgspec.json.decode(entry.response_object)
                if is_settled(body):
                    return entry.request_received_timestamp
        raise AssertionError(f"{resource} {name} never was")


def is_settled(body: dict[str, Json]) -> bool:
    conditions = get_mappings(body, "status", "conditions")
    if any(get_text(condition, "type") == "Complete" for condition in conditions):
        return True
    if get_value(body, "status", "status") is True:  # how a Database says it
        return True
    expected = get_int(body, "spec", "replicas") or -1
    return expected in {
        get_int(body, "status", "availableReplicas"),
        get_int(body, "status", "readyReplicas"),
    }


@asynccontextmanager
async def open_namespace(
    plane: ControlPlane, folder: Path, *, files: Path = FIRST, scenario: Path | None = None
) -> AsyncIterator[NamespaceStage]:
    """With a kubelet on its own connection and as another user.

    The cluster gets what a scenario has already: its operators, too.
    """
    profile = folder / "profile.yaml"
    profile.write_text(PROFILE)
    simulation = SimulationConfig(profile=profile, scenario=scenario)
    shop = shutil.copytree(files, folder / "shop")
    name = f"shop-{next(_numbers)}"
    body: dict[str, Json] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    login = plane.kubeconfig("admin")
    async with (
        real_world(kubeconfig=login) as world,
        real_world(kubeconfig=login) as other,
        asyncio.TaskGroup() as group,
    ):
        require_live(await ClusterClient(Dispatcher(ResilientWorld(other))).apply(body))
        await preload(other, simulation)
        until = Ms(world.now() + 3 * MINUTE)
        kubelet = group.create_task(run_controllers(world, simulation, until=until))
        try:
            yield NamespaceStage(plane, name, shop)
        finally:
            kubelet.cancel()
