"""`tidegate sync` on a real API server whose pods our kubelet runs, by the server's audit log."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from plane import ControlPlane
from plane.audit import AuditEntry, read_audit
from tests.e2e.rollout_audit import WRITES
from tests.unit.render.sops_program import AgeKey, encrypt
from tidegate.flows.wiring import Simulation
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mappings, number, text
from tidegate.testing import Desk, live_in, live_of, real_world
from tidegate.world.line import Line

pytestmark = [pytest.mark.kube, pytest.mark.timeout(150)]

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
CANARY = "puffin-sleeps-at-sea"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane whose pods nobody but us runs."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


class Ran(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str


class Harbour:
    """A namespace of its own, the shop's files, and the command for both."""

    def __init__(self, plane: ControlPlane, namespace: str, shop: Path) -> None:
        self.plane = plane
        self.namespace = namespace
        self.shop = shop

    async def start(self, *words: str) -> Process:
        login = str(self.plane.kubeconfig("tidegate"))
        place = ("--kubeconfig", login, "--namespace", self.namespace)
        command = (sys.executable, "-m", "tidegate", "sync", str(self.shop), *place, *words)
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.shop.parent)}
        return await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, env=environment, stdout=PIPE, stderr=PIPE
        )

    async def sync(self, *words: str) -> Ran:
        process = await self.start(*words)
        stdout, stderr = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, stdout.decode(), stderr.decode())

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
        own = [one for one in entries if one.object_ref.namespace == self.namespace]
        own.sort(key=lambda one: one.request_received_timestamp)
        return [
            (
                one.verb,
                f"{one.object_ref.resource}/{one.object_ref.name}",
                one.request_received_timestamp,
            )
            for one in own
        ]

    def settled(self, name: str) -> str:
        """When the server was told that an object is as it should be."""
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
    conditions = mappings(body, "status", "conditions")
    if any(text(one, "type") == "Complete" for one in conditions):
        return True
    wanted = number(body, "spec", "replicas") or -1
    return wanted in {
        number(body, "status", "availableReplicas"),
        number(body, "status", "readyReplicas"),
    }


@pytest.fixture
async def harbour(bare_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Harbour]:
    """With a kubelet beside it, on a connection of its own and as somebody else."""
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE)
    shop = shutil.copytree(FIRST, tmp_path / "shop")
    name = f"sync-{next(_numbers)}"
    body: dict[str, Json] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    login = bare_plane.kubeconfig("admin")
    async with (
        real_world(kubeconfig=login) as world,
        real_world(kubeconfig=login) as other,
        asyncio.TaskGroup() as group,
    ):
        live_of(await Desk(Line(other)).apply(body))
        until = Ms(world.now() + 3 * MINUTE)
        kubelet = group.create_task(live_in(world, Simulation(profile=profile), until=until))
        try:
            yield Harbour(bare_plane, name, shop)
        finally:
            kubelet.cancel()


def assert_in_order(harbour: Harbour) -> None:
    """Waves came one after another, each behind what the one before it had to become."""
    first = {name: at for _, name, at in reversed(harbour.here(harbour.writes()))}
    assert set(first) == set(WAVES)
    waves = [WAVES[name] for name in sorted(first, key=lambda name: first[name])]
    assert waves == sorted(waves)
    for before, after in (
        ("statefulsets/db", "jobs/migrate"),
        ("deployments/redis", "jobs/migrate"),
        ("jobs/migrate", "deployments/shop"),
        ("deployments/shop", "ingresses/shop"),
    ):
        assert harbour.settled(before) < first[after], (before, after)


async def test_the_first_example_comes_in_order_and_a_second_run_writes_nothing(
    harbour: Harbour,
) -> None:
    harbour.slow_database(2)

    ran = await harbour.sync()

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_order(harbour)
    written = len(harbour.writes())
    again = await harbour.sync()
    assert again.code == 0, again.stdout + again.stderr
    assert "nothing changed: looked at 10 objects" in again.stdout
    assert len(harbour.writes()) == written


async def test_without_waves_the_migration_fails_because_its_database_is_not_there(
    harbour: Harbour,
) -> None:
    ran = await harbour.sync("--ignore-waves")

    assert ran.code == 4, ran.stdout + ran.stderr
    end = ran.stdout[ran.stdout.index("✗") :]
    assert f"Job {harbour.namespace}/migrate: Job has reached the specified backoff limit" in end
    assert f"Service {harbour.namespace}/db has no ready endpoints" in end
    assert f"-n {harbour.namespace} describe job migrate" in end


async def test_a_rollout_that_is_killed_goes_on_and_what_left_git_is_pruned(
    harbour: Harbour,
) -> None:
    harbour.slow_database(2)
    killed = await harbour.start("-o", "json")
    assert killed.stdout is not None
    while json.loads(await killed.stdout.readline())["told"] != "gate.waiting":
        pass
    killed.kill()
    assert await killed.wait() == -signal.SIGKILL

    ran = await harbour.sync()

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_order(harbour)
    for name in ("ingress", "redis", "redis-service"):
        (harbour.shop / f"{name}.yaml").unlink()
    before = len(harbour.writes())
    kept = await harbour.sync()
    pruned = await harbour.sync("--prune")
    assert (kept.code, pruned.code) == (0, 0), pruned.stdout + pruned.stderr
    told = [(verb, name) for verb, name, _ in harbour.here(harbour.writes()[before:])]
    assert told[0] == ("delete", "ingresses/shop")
    assert sorted(told[1:]) == [("delete", "deployments/redis"), ("delete", "services/redis")]


async def test_an_encrypted_file_that_no_key_opens_is_refused_and_nothing_is_written(
    harbour: Harbour,
) -> None:
    path = harbour.shop / "sealed.yaml"
    plain = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: sealed\nstringData:\n  a: {CANARY}\n"
    rule = ("--encrypted-regex", "^(data|stringData)$")
    path.write_bytes(encrypt(path, plain, AgeKey.generate(), *rule))

    ran = await harbour.sync()

    assert ran.code == 3, ran.stdout + ran.stderr
    assert "sealed.yaml" in ran.stderr
    assert "  hint: " in ran.stderr
    assert harbour.here(harbour.writes()) == []


async def test_a_namespace_that_is_not_there_is_told_before_anything_is_written(
    harbour: Harbour,
) -> None:
    before = len(harbour.writes())
    harbour.namespace = "nowhere"

    ran = await harbour.sync()

    assert ran.code == 3, ran.stdout + ran.stderr
    assert "there is no namespace `nowhere`, nor does the plan bring it" in ran.stdout
    assert len(harbour.writes()) == before
