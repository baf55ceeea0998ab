"""Rights that a user loses while a rollout runs, and writes that are retried until a timeout."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import Site, a_config_map
from tests.e2e.output import events_of, read_until
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.tidegate_runs import write_unit
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.objects import JsonObject, Kind, Ref

pytestmark = pytest.mark.kube

RBAC = "rbac.authorization.k8s.io"
BINDING = Kind(RBAC, "v1", "ClusterRoleBinding")
WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {test.tidegate.dev/ready-after: 8s}}
    spec: {containers: [{name: main, image: main}]}
"""
LAST = to_yaml(a_config_map("last")).replace(
    "metadata:\n", 'metadata:\n  annotations: {argocd.argoproj.io/sync-wave: "1"}\n'
)
READ = ("get", "list", "watch")
UNREACHABLE, TIMED_OUT = 5, 8


@dataclass(frozen=True, slots=True)
class Guest:
    """A user with all rights, until its binding is deleted, and a rollout of this user."""

    client: ClusterClient
    name: str
    process: Process

    async def lose_rights(self) -> None:
        await self.client.delete(Ref(BINDING, "", self.name))

    async def lose_right_to_write(self, *groups: str) -> None:
        """Keep the rights on everything in these API groups, and to read."""
        keeps: JsonObject = {"apiGroups": [*groups], "resources": ["*"], "verbs": ["*"]}
        records: JsonObject = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}
        reads: JsonObject = {"apiGroups": ["*"], "resources": ["*"], "verbs": [*READ]}
        role: JsonObject = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": self.name},
            "rules": [keeps, records, reads],
        }
        require_live(await self.client.apply(role))
        require_live(await self.client.apply(a_binding(f"{self.name}-reads", self.name, self.name)))
        await self.lose_rights()

    async def end(self) -> str:
        """Return what the rollout printed after its first gate, when it has ended."""
        assert self.process.stdout is not None
        rest = (await asyncio.wait_for(self.process.stdout.read(), 90)).decode()
        await self.process.wait()
        return rest


def a_binding(name: str, user: str, role: str) -> JsonObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": BINDING.name,
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
        "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": RBAC},
    }


@asynccontextmanager
async def a_guest(site: Site, directory: Path, *options: str) -> AsyncIterator[Guest]:
    """A guest whose rollout waits at its first gate."""
    unit = write_unit(directory / "unit", web=WEB, last=LAST)
    async with site.client(site.kubeconfig()) as client:
        name = f"guest-of-{client.namespace}"
        certificate, key = site.plane.client_certificate(name)
        login: JsonObject = {"client-certificate": str(certificate), "client-key": str(key)}
        require_live(await client.apply(a_binding(name, name, "cluster-admin")))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tidegate", "sync", str(unit), "--yes", *options),
            *("--kubeconfig", str(site.kubeconfig(user=login)), "--namespace", client.namespace),
            stdout=PIPE,
            env=os.environ | {"HOME": str(directory)},
        )
        guest = Guest(client, name, process)
        yield guest


async def test_a_rollout_that_loses_all_rights_ends_and_says_why(
    site: Site, tmp_path: Path
) -> None:
    options = ("-o", "json", "--cluster-patience", "10s")
    async with a_guest(site, tmp_path, *options) as guest:
        await read_until(guest.process, "gate.waiting")
        await guest.lose_rights()

        rest = await guest.end()

    (waiting,) = events_of(rest, "cluster.waiting")
    (finished,) = events_of(rest, "rollout.finished")
    assert guest.process.returncode == UNREACHABLE
    assert "leases" in waiting["message"]
    assert guest.name in finished["message"]


async def test_a_timeout_says_which_write_was_still_refused(site: Site, tmp_path: Path) -> None:
    async with a_guest(site, tmp_path, "--timeout", "25s") as guest:
        await read_until(guest.process, "waiting for Deployment")
        await guest.lose_right_to_write("apps", "coordination.k8s.io")

        rest = await guest.end()

    last_lines = rest[rest.index("timed out") :]
    assert guest.process.returncode == TIMED_OUT
    assert f"ConfigMap {guest.client.namespace}/last" in last_lines
    assert f'User "{guest.name}" cannot patch' in last_lines
    assert "applied 1 of 2 objects" in last_lines
