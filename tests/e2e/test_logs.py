"""`sync --logs` on a real API server, which asks a kubelet for what Jobs and hooks print."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.namespace_stage import NamespaceStage, open_namespace
from tests.support.cluster_client import ClusterClient, require_items, require_live
from tests.support.failing_hook import HOOK, LOGIN
from tests.support.failing_migration import MIGRATION
from tests.support.kubelet import LogEndpoint
from tests.support.log_pods import NODE
from tests.support.tidegate_runs import write_unit
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import JsonObject
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.requests import Selection
from tidegate.world.resilient import ResilientWorld

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
PRINTED = ["applying 001", "user hunter2-hunter2 is there", "\x1b[2Jdone"]
SHOWN = ["applying 001", "user *** is there", "\x1b[2Jdone"]


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane on which only we run the pods."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


@pytest.fixture
async def endpoint(bare_plane: ControlPlane) -> AsyncIterator[LogEndpoint]:
    """Where the nodes of that say that their kubelets listen."""
    certificate, key = bare_plane.authority.for_server("kubelet", names=["127.0.0.1"])
    async with (
        LogEndpoint(certificate, key, usual=PRINTED).running() as running,
        real_world(kubeconfig=bare_plane.kubeconfig("admin")) as world,
    ):
        client = ClusterClient(Dispatcher(ResilientWorld(world)))
        status: JsonObject = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": running.port}},
        }
        for node in require_items(await client.page(Selection(NODE))):
            require_live(await client.patch(node.ref, {"status": status}, subresource="status"))
        yield running


@pytest.fixture
async def stage(
    bare_plane: ControlPlane, endpoint: LogEndpoint, tmp_path: Path
) -> AsyncIterator[NamespaceStage]:
    assert endpoint.port
    files = write_unit(tmp_path / "files", job=MIGRATION, login=LOGIN)
    async with open_namespace(bare_plane, tmp_path, files=files) as stage:
        yield stage


@pytest.mark.parametrize("job", [MIGRATION, HOOK], ids=["job", "hook"])
async def test_logs_of_jobs_and_hooks_are_printed_while_they_run(
    stage: NamespaceStage, job: str
) -> None:
    write_unit(stage.shop, job=job)

    ran = await stage.run("sync", "--yes", "--logs", "-o", "json")

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    printed = [event for event in events if event["event"] == "log.line"]
    assert ran.code == 0, ran.stdout + ran.stderr
    assert [item["message"] for item in printed] == SHOWN
    assert {(item["kind"], item["name"], item["unit"]) for item in printed} == {
        ("Job", "migrate", f"{stage.namespace}/shop")
    }
    assert all(item["reason"].endswith("/migrate") for item in printed)
    assert events.index(printed[-1]) < len(events) - 1


async def test_each_log_line_follows_the_name_of_its_job(
    stage: NamespaceStage, endpoint: LogEndpoint
) -> None:
    endpoint.usual = ["creating tables", "done"]

    ran = await stage.run("sync", "--yes", "--logs")

    messages = [line[line.index("Job ") :] for line in ran.stdout.splitlines() if " | " in line]
    assert ran.code == 0, ran.stdout + ran.stderr
    job = f"Job {stage.namespace}/migrate"
    assert messages == [f"{job} | creating tables", f"{job} | done"]
