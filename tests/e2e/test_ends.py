"""Rollouts on a real server that do not come to their end: each end has an exit code of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.e2e.conftest import Site
from tests.fakes.tidegate_command import Tidegate
from tidegate.engine.stored import NAMESPACE
from tidegate.model.objects import Kind, Ref
from tidegate.testing import Desk, items_of
from tidegate.world.calls import List, Selection

pytestmark = [pytest.mark.kube, pytest.mark.timeout(120)]

OVERTAKEN, LATE = 6, 8
CONFIG_MAP, LEASE, JOB = (
    Kind("", "v1", "ConfigMap"),
    Kind("coordination.k8s.io", "v1", "Lease"),
    Kind("batch", "v1", "Job"),
)
NEVER = """apiVersion: batch/v1
kind: Job
metadata: {name: never}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {no-node-is: here}
      containers: [{name: a, image: a}]
"""
PLAIN = """apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
"""
HELD = """apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.org/held]}
"""


def write_unit(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "unit.yaml").write_text(text)
    return folder


async def leases_of(desk: Desk) -> list[str]:
    (page,) = await desk.ask(List(Selection(LEASE, NAMESPACE)))
    return [live.ref.name for live in items_of(page)]


async def test_who_gives_way_to_another_rollout_says_so(site: Site, tmp_path: Path) -> None:
    config = site.kubeconfig()
    first = write_unit(tmp_path / "unit", NEVER)
    async with site.desk(config) as desk:
        where = ("--kubeconfig", str(config), "--namespace", desk.namespace, "--name", "ways")
        tidegate = Tidegate(tmp_path / "home")
        waiting = asyncio.create_task(tidegate.run("sync", first, "--yes", *where))
        await desk.settled(Ref(JOB, desk.namespace, "never"), lambda live: live is not None)
        then = write_unit(tmp_path / "unit", PLAIN)
        second = await Tidegate(tmp_path / "other").run("sync", then, "--yes", *where)
        gave_way = await waiting

    assert gave_way.code == OVERTAKEN, gave_way
    assert "another rollout" in gave_way.stdout
    assert "Traceback" not in gave_way.stderr
    assert second.code == 0, second


@pytest.mark.parametrize("output", ["text", "json"])
async def test_a_deletion_whose_time_is_up_says_what_is_left(
    output: str, site: Site, tmp_path: Path
) -> None:
    config = site.kubeconfig()
    unit, tidegate = write_unit(tmp_path / "unit", HELD), Tidegate(tmp_path / "home")
    async with site.desk(config) as desk:
        where = ("--kubeconfig", str(config), "--namespace", desk.namespace, "--name", output)
        brought = await tidegate.run("sync", unit, "--yes", *where)
        before = await leases_of(desk)
        words = ("delete", unit, "--yes", *where, "--timeout", "2s", "-o", output)
        ended = await tidegate.run(*words)
        after = await leases_of(desk)
        held = Ref(CONFIG_MAP, desk.namespace, "held")
        await desk.patch(held, {"metadata": {"finalizers": None}})

    assert brought.code == 0, brought
    assert ended.code == LATE, ended
    assert "its time is up" in ended.stdout
    assert "held" in ended.stdout
    assert {*after} <= {*before}, "the lease is returned"
