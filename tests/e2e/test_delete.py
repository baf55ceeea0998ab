"""`tidegate delete` on a real API server whose pods our kubelet runs, by the server's audit log."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from plane.audit import AuditEntry, read_audit
from tests.e2e.namespace_stage import WAVES, NamespaceStage, open_namespace
from tests.support.rollout_audit import WRITES
from tidegate.cli.commands.delete import NOTHING_MESSAGE

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
CREATED, REFUSED = 201, 400
FAREWELL = """\
apiVersion: batch/v1
kind: Job
metadata: {name: farewell, annotations: {argocd.argoproj.io/hook: PreDelete}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "busybox:1"}]
"""
LEAVING = {**WAVES, "jobs/farewell": 0}


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane on which only we run the pods."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


@pytest.fixture
async def stage(bare_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[NamespaceStage]:
    """A namespace with the first example, and a hook for its deletion."""
    async with open_namespace(bare_plane, tmp_path) as stage:
        stage.slow_database(2)
        (stage.shop / "farewell.yaml").write_text(FAREWELL)
        ran = await stage.run("sync", "--yes")
        assert ran.code == 0, ran.stdout + ran.stderr
        yield stage


def deletions(stage: NamespaceStage) -> dict[str, str]:
    """When each object was asked to go; an AssertionError if one was asked twice."""
    messages = [(name, at) for verb, name, at in stage.here(stage.writes()) if verb == "delete"]
    assert len(messages) == len(dict(messages))
    return dict(messages)


def ends(stage: NamespaceStage) -> dict[str, str]:
    """The time of the last write to each object: an owner is gone when its finalizer is removed."""
    last: dict[str, str] = {}
    for entry in read_audit(stage.plane.audit_log):
        target = entry.object_ref
        done = entry.verb in WRITES and entry.response_status.code < REFUSED
        if done and target.namespace == stage.namespace and not target.subresource:
            name = f"{target.resource}/{target.name}"
            last[name] = max(last.get(name, ""), entry.request_received_timestamp)
    return last


def assert_in_reverse(stage: NamespaceStage) -> None:
    """The hook ran once and first; then waves went in reverse, each when all above was gone."""
    request, ended = deletions(stage), ends(stage)
    assert set(request) == set(LEAVING)
    waves = [LEAVING[name] for name in sorted(request, key=lambda name: request[name])]
    assert waves == sorted(waves, reverse=True)
    for name, wave in LEAVING.items():
        for below in (item for item in LEAVING if LEAVING[item] < wave):
            assert ended[name] < request[below], (name, below)
    made = [write for write in stage.writes() if is_made(write, stage.namespace)]
    assert len(made) == 1
    assert stage.settled("jobs/farewell") < min(request.values())


def is_made(entry: AuditEntry, namespace: str) -> bool:
    """Whether a write of ours made the hook."""
    target = entry.object_ref
    about = (target.namespace, target.resource, target.name)
    is_new = entry.response_status.code == CREATED
    return is_new and about == (namespace, "jobs", "farewell")


async def test_the_first_example_is_deleted_in_reverse_and_a_second_run_writes_nothing(
    stage: NamespaceStage,
) -> None:
    ran = await stage.run("delete", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_reverse(stage)
    written = len(stage.writes())
    again = await stage.run("delete", "--yes")
    result = again.stdout.splitlines()[1:]
    assert (again.code, result) == (0, [NOTHING_MESSAGE]), again.stderr
    assert len(stage.writes()) == written


async def test_a_killed_deletion_continues(stage: NamespaceStage) -> None:
    killed = await stage.start("delete", "--yes", "-o", "json")
    assert killed.stdout is not None
    while json.loads(await killed.stdout.readline())["event"] != "object.pruned":
        pass
    killed.kill()
    assert await killed.wait() == -signal.SIGKILL

    ran = await stage.run("delete", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_reverse(stage)
