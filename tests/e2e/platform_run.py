"""A whole platform on a real cluster, read from the audit log of the server.

Our kubelet, provisioner and operators run its pods, volumes and custom resources. Its rollout is
killed three times; then it is inspected, changed and deleted.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import msgspec

from plane import ControlPlane
from plane.audit import AuditEntry, read_audit
from tests.e2e.namespace_stage import is_settled
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.rollout_audit import WRITES
from tests.support.tidegate_command import CommandResult, Tidegate
from tests.support.unit_families import REPORTERS
from tests.support.worlds import preload, real_world, run_controllers
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.model.k8s.json_fields import get_int
from tidegate.model.k8s.objects import Json
from tidegate.model.times import MINUTE, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld

EXAMPLES = Path(__file__).parents[2] / "examples"
HOMES = ("argocd", "flux-system")
QUICK = """
name: quick
rules: [{when: {image: "*"}, pull: 0s, start: 0s, ready: 0s, run: 0s, init: 0s, stop: 0s}]
stages: [{when: {kind: "*"}, after: 0s}]
"""
"""Everything takes as long as a real server needs, and no longer."""
LONG_PROBES = {"initialDelaySeconds: 60": "initialDelaySeconds: 1", "periodSeconds: 30": ""}
KILLS = (("object.written", 5), ("rollout.started", 1), ("object.written", 3))
"""The event after which a rollout is killed, and its count."""

TELLERS = (*REPORTERS, "argocd-applicationset-controller")
"""The writers of the statuses of units and ApplicationSets."""

Workload = str
"""`NAMESPACE/RESOURCE/NAME`, as the log has them."""


@dataclass(frozen=True)
class Platform:
    """An example on a cluster.

    `waves`: its workloads, in the expected order. `wishes`: the options of its commands.
    """

    plane: ControlPlane
    root: Path
    waves: Sequence[Iterable[Workload]]
    environment: dict[str, str] = field(default_factory=dict)
    wishes: Sequence[str] = ()

    async def run(self, verb: str, *words: str) -> CommandResult:
        result = (*self._words, "--yes", "--timeout", "200s", *words)
        runner = Tidegate(self.root.parent)
        return await runner.run(verb, *result, cwd=self.root.parent, **self.environment)

    async def plan(self) -> CommandResult:
        """Print the changes that are left; the exit code says whether there are some."""
        runner = Tidegate(self.root.parent)
        words = (*self._words, "--exit-code", "--changes-only")
        return await runner.run("plan", *words, cwd=self.root.parent, **self.environment)

    async def kill(self, result: str, times: int) -> None:
        """Start a rollout, and kill it after so many events of a type."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tidegate", "sync", *map(str, self._words)),
            *("--yes", "-o", "json", *self.wishes),
            env={"PATH": os.environ["PATH"], "HOME": str(self.root.parent), **self.environment},
            stdout=PIPE,
            stderr=PIPE,
        )
        assert process.stdout is not None
        while times and (line := await process.stdout.readline()):
            times -= json.loads(line)["event"] == result
        process.kill()
        assert await process.wait() == -signal.SIGKILL

    @cached_property
    def _login(self) -> Path:
        """A separate user, so that the audit log shows the writer."""
        pair = self.plane.client_certificate(self.user, groups=["system:masters"])
        words = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        return self.plane.kubeconfig(self.user, credentials=words)

    @property
    def user(self) -> str:
        return self.root.name

    @property
    def _words(self) -> tuple[str | Path, ...]:
        place = ("--kubeconfig", self._login, "--context", "plane")
        return (self.root, *place)

    def wrote(self) -> list[AuditEntry]:
        """What the command has written, in the order of the requests, but how units are."""
        matches = [
            item
            for item in read_audit(self.plane.audit_log)
            if item.user.username == self.user
            and item.verb in WRITES
            and "dryRun=All" not in item.request_uri
            and not any(f"fieldManager={name}" in item.request_uri for name in TELLERS)
        ]
        return sorted(matches, key=lambda item: item.request_received_timestamp)

    def deleted(self, since: int) -> list[Workload]:
        """What it has deleted, from one of its writes on."""
        return [name_of(item) for item in self.wrote()[since:] if item.verb == "delete"]

    def came_in_order(self) -> bool:
        """No object of a wave was written before the workloads of the previous one were healthy."""
        firsts: dict[Workload, str] = {}
        for item in self.wrote():
            firsts.setdefault(name_of(item), item.request_received_timestamp)
        well = self._well()
        return all(
            well[early] <= firsts[later]
            for before, after in pairwise(self.waves)
            for early in before
            for later in after
        )

    def went_in_reverse(self, since: int) -> bool:
        """No object of a wave was deleted before all objects of the later waves."""
        places = {name: place for place, name in enumerate(self.deleted(since))}
        waves = [[item for item in wave if "/jobs/" not in item] for wave in self.waves]
        kept = [wave for wave in waves if wave]
        return all(
            places[later] < places[early]
            for before, after in pairwise(kept)
            for early in before
            for later in after
        )

    def _well(self) -> dict[Workload, str]:
        """When the status of each workload first reported that it is healthy."""
        result: dict[Workload, str] = {}
        for item in read_audit(self.plane.audit_log):
            if item.object_ref.subresource == "status" and item.response_object:
                body: dict[str, Json] = msgspec.json.decode(item.response_object)
                if is_settled(body) or get_int(body, "status", "numberReady"):
                    result.setdefault(name_of(item), item.request_received_timestamp)
        return result


def name_of(entry: AuditEntry) -> Workload:
    object_ref = entry.object_ref
    return f"{object_ref.namespace}/{object_ref.resource}/{object_ref.name}"


async def come(platform: Platform) -> None:
    """A rollout that is killed three times finishes, with its waves in order."""
    for result, times in KILLS:
        await platform.kill(result, times)
    ran = await platform.run("sync", *platform.wishes)
    assert ran.code == 0, ran.stdout + ran.stderr
    assert platform.came_in_order()


async def rest(platform: Platform) -> None:
    """Where nothing has changed, nothing is written."""
    before = len(platform.wrote())
    ran = await platform.run("sync")
    assert ran.code == 0, ran.stdout + ran.stderr
    written = [(item.verb, name_of(item), item.request_uri) for item in platform.wrote()[before:]]
    assert written == [], written
    planned = await platform.plan()
    assert planned.code == 0, planned.stdout + planned.stderr


async def lose(platform: Platform, order: Sequence[Workload]) -> None:
    """What has left Git goes, this before that."""
    before = len(platform.wrote())
    ran = await platform.run("sync", "--yes-delete-contents")
    assert ran.code == 0, ran.stdout + ran.stderr
    gone = platform.deleted(before)
    assert [item for item in gone if item in order] == [*order], gone


async def go(platform: Platform) -> None:
    """What came last goes first."""
    before = len(platform.wrote())
    ran = await platform.run("delete", "--yes-delete-contents")
    assert ran.code == 0, ran.stdout + ran.stderr
    assert platform.went_in_reverse(before)


def copy_of(name: str, folder: Path) -> Path:
    """An example without keys; probes that wait for long by themselves wait for a second."""
    ignored = shutil.ignore_patterns(".keys", "sealed.yaml", "*.enc.yaml")
    root = Path(shutil.copytree(EXAMPLES / name, folder / name / name, ignore=ignored))
    for file in root.rglob("*.yaml"):
        text = quick = file.read_text()
        for slow, short in LONG_PROBES.items():
            quick = quick.replace(slow, short)
        if quick != text:
            file.write_text(quick)
    return root


@asynccontextmanager
async def inhabited(
    plane: ControlPlane, folder: Path, scenario: Path | None = None
) -> AsyncIterator[None]:
    """A cluster with what a scenario gives it, in which pods run and operators work."""
    profile = folder / "profile.yaml"
    profile.write_text(QUICK)
    simulation = SimulationConfig(profile=profile, scenario=scenario)
    login = plane.kubeconfig("admin")
    async with (
        real_world(kubeconfig=login) as world,
        real_world(kubeconfig=login) as other,
        asyncio.TaskGroup() as group,
    ):
        client = ClusterClient(Dispatcher(ResilientWorld(other)))
        for name in HOMES:
            metadata: dict[str, Json] = {"name": name}
            require_live(
                await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            )
        await preload(other, simulation)
        until = Ms(world.now() + 15 * MINUTE)
        inhabitants = group.create_task(run_controllers(world, simulation, until=until))
        try:
            yield
        finally:
            inhabitants.cancel()
