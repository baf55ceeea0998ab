"""A real API server that stops answering while a rollout runs: dead, or frozen."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.conftest import Site
from tests.e2e.output import events_of, read_until
from tests.support.cluster_client import require_items
from tidegate.model.k8s.kinds import JOB, NODE
from tidegate.model.k8s.objects import Ref
from tidegate.world.requests import List, Selection

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

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
LOSSES: Mapping[str, Callable[[ControlPlane], None]] = {
    "dead": lambda plane: plane.kill("apiserver"),
    "frozen": lambda plane: plane.pause("apiserver"),
}
RETURNS: Mapping[str, Callable[[ControlPlane], None]] = {
    "dead": lambda plane: plane.revive("apiserver"),
    "frozen": lambda plane: plane.resume("apiserver"),
}
UNREACHABLE, TIMED_OUT, INTERRUPTED = 5, 8, 130
STOP_LIMIT = 15
"""Seconds: the limit of a stop without answers, and the time that a process needs to end."""


@asynccontextmanager
async def a_waiting_rollout(site: Site, folder: Path, *options: str) -> AsyncIterator[Process]:
    """A rollout that waits for a Job whose pod fits no node."""
    config, unit = site.kubeconfig(), folder / "unit"
    unit.mkdir()
    (unit / "unit.yaml").write_text(NEVER)
    async with site.client(config) as client:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tidegate", "sync", str(unit), "--yes", "-o", "json"),
            *("--kubeconfig", str(config), "--namespace", client.namespace, *options),
            stdout=PIPE,
            env=os.environ | {"HOME": str(folder)},
        )
        await client.settled(Ref(JOB, client.namespace, "never"), lambda live: live is not None)
        yield process


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("number", "options", "code"),
    [
        (signal.SIGTERM, (), INTERRUPTED),
        (signal.SIGINT, (), INTERRUPTED),
        (None, ("--timeout", "30s"), TIMED_OUT),
        (None, ("--cluster-patience", "20s"), UNREACHABLE),
    ],
)
async def test_a_rollout_ends_although_its_cluster_does_not_answer(
    own_site: Site,
    tmp_path: Path,
    loss: str,
    number: signal.Signals | None,
    options: tuple[str, ...],
    code: int,
) -> None:
    async with a_waiting_rollout(own_site, tmp_path, *options) as process:
        assert process.stdout is not None
        await read_until(process, "gate.waiting")
        LOSSES[loss](own_site.plane)
        lost_at = time.monotonic()
        try:
            await read_until(process, "cluster.waiting")
            noticed_at = time.monotonic()
            if number is not None:
                process.send_signal(number)
            rest = (await asyncio.wait_for(process.stdout.read(), 60)).decode()
            await process.wait()
            ended_at = time.monotonic()
        finally:
            RETURNS[loss](own_site.plane)

    (finished,) = events_of(rest, "rollout.finished")
    assert (process.returncode, finished["reason"]) == (code, "stopped")
    assert noticed_at - lost_at <= 10
    if number is not None:
        assert ended_at - noticed_at <= STOP_LIMIT


async def test_a_rollout_continues_when_its_cluster_answers_again(
    own_site: Site, tmp_path: Path
) -> None:
    async with a_waiting_rollout(own_site, tmp_path, "--timeout", "90s") as process:
        assert process.stdout is not None
        await read_until(process, "gate.waiting")
        own_site.plane.kill("apiserver")
        await read_until(process, "cluster.waiting")
        own_site.plane.revive("apiserver")
        await read_until(process, "cluster.answered")
        async with own_site.client(own_site.kubeconfig()) as client:
            (page,) = await client.ask(List(Selection(NODE)))
            node = require_items(page)[0].ref
            await client.patch(node, {"metadata": {"labels": {"no-node-is": "here"}}})
        await asyncio.wait_for(process.stdout.read(), 120)
        await process.wait()

    assert process.returncode == 0
