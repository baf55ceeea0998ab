"""A release on a real API server, killed at random: no record is repeated or stays pending.

A killed process leaves a lease, which others watch for its whole term before they continue. Here
it is deleted at once, as an operator may do who knows that the process is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from plane import ControlPlane
from plane.audit import read_audit
from tests.support.kubectl import kubectl
from tests.support.releases import ChartRepository, config_map, hook
from tests.support.tidegate_command import Tidegate

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

HOME, USER = "released-killed", "tidegate"
KILLS, SEED, LINES = 10, 19, 30
"""Kill so many processes, each after at most so many lines of output."""
CREATED = 201
NUMBER = "{{ .Release.Revision }}"
EVENTS = {"before": "pre-install,pre-upgrade", "later": "post-install,post-upgrade"}


@dataclass(slots=True)
class KilledRelease:
    """A release whose hooks and notes are named after their revision."""

    plane: ControlPlane
    shop: ChartRepository
    kills: int = 0
    values: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))

    @property
    def words(self) -> tuple[str, ...]:
        login = str(self.plane.kubeconfig(USER))
        return (str(self.shop.root), "--kubeconfig", login, "--context", "plane", "--yes")

    def change(self) -> None:
        self.values += 1
        self.shop.release(values={"to": str(self.values)})

    async def die(self) -> None:
        """Run a sync, and kill it after some lines; one that ends before that is followed by a
        newer revision, and sometimes one that was killed is, too.
        """
        words = (sys.executable, "-m", "tidegate", "sync", *self.words, "-o", "json")
        user_home = str(self.shop.root.parent)
        left, known = self.chance.randint(1, LINES), self.leases()
        process = await asyncio.create_subprocess_exec(
            *words, env={"PATH": os.environ["PATH"], "HOME": user_home}, stdout=PIPE, stderr=PIPE
        )
        assert process.stdout is not None
        while left and await process.stdout.readline():
            left -= 1
        if process.returncode is None:
            process.kill()
        is_killed = await process.wait() == -signal.SIGKILL
        for name in self.leases() - known:
            kubectl(self.admin, "delete", "-n", "tidegate-system", name, "--ignore-not-found")
        self.kills += is_killed
        if not is_killed or self.chance.random() < 1 / 4:
            self.change()

    @property
    def admin(self) -> Path:
        return self.plane.kubeconfig("admin")

    def leases(self) -> set[str]:
        words = ("get", "lease", "-n", "tidegate-system", "-o", "name")
        return set(kubectl(self.admin, *words).split())

    def records(self) -> dict[int, str]:
        """By revision, its status."""
        words = ("get", "secret", "-n", HOME, "-l", "owner=helm", "-o", "json")
        items = json.loads(kubectl(self.admin, *words))["items"]
        labels = (item["metadata"]["labels"] for item in items)
        return {int(label["version"]): label["status"] for label in labels}

    def made(self) -> Counter[str]:
        """How often each object was made."""
        return Counter(
            f"{item.object_ref.resource}/{item.object_ref.name}"
            for item in read_audit(self.plane.audit_log)
            if item.object_ref.namespace == HOME
            and item.user.username == USER
            and item.response_status.code == CREATED
            and "dryRun=All" not in item.request_uri
        )


async def test_ten_kills_leave_no_pending_record_no_repeated_hook_and_no_gap(
    plane: ControlPlane, tmp_path: Path
) -> None:
    shop = ChartRepository(tmp_path / "repository", HOME)
    shop.release(maxHistory=0)
    for name, events in EVENTS.items():
        numbered = hook(name, events).replace(f"name: {name}", f"name: {name}-{NUMBER}")
        assert NUMBER in numbered
        shop.put(f"templates/{name}.yaml", numbered)
    for name in ("web", "more"):
        shop.put(f"templates/{name}.yaml", config_map(name, to="'{{ .Values.to }}'"))
    release = KilledRelease(plane, shop)
    kubectl(release.admin, "create", "namespace", HOME)
    release.change()
    while release.kills < KILLS:
        await release.die()

    ran = await Tidegate(tmp_path).run("sync", *release.words, "--timeout", "100s")

    assert ran.code == 0, ran.stdout + ran.stderr
    revision_statuses, made = release.records(), release.made()
    last = max(revision_statuses)
    assert sorted(revision_statuses) == [*range(1, last + 1)]
    assert revision_statuses.pop(last) == "deployed"
    assert {*revision_statuses.values()} <= {"superseded", "failed"}
    entered = {f"secrets/sh.helm.release.v1.web.v{number}": 1 for number in range(1, last + 1)}
    assert {name: count for name, count in made.items() if "sh.helm" in name} == entered
    hooks = {name: count for name, count in made.items() if name.startswith("jobs/")}
    assert {*hooks.values()} == {1}, hooks
    whole = [number for number, status in revision_statuses.items() if status == "superseded"]
    desired = {f"jobs/{name}-{item}" for name in EVENTS for item in (*whole, last)}
    assert desired <= hooks.keys()
