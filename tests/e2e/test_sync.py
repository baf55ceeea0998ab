"""`tidegate sync` on a real API server whose pods our kubelet runs, by the server's audit log."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.namespace_stage import WAVES, NamespaceStage, open_namespace
from tests.e2e.output import lines_with
from tests.support.recorded_wording import RecordedWording
from tests.support.sops_program import AgeKey, encrypt

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

CANARY = "puffin-sleeps-at-sea"


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane on which only we run the pods."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


@pytest.fixture
async def stage(bare_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[NamespaceStage]:
    async with open_namespace(bare_plane, tmp_path) as stage:
        yield stage


def assert_in_order(stage: NamespaceStage) -> None:
    """The waves ran in order, each when the previous one was healthy."""
    first = {name: at for _, name, at in reversed(stage.here(stage.writes()))}
    assert set(first) == set(WAVES)
    waves = [WAVES[name] for name in sorted(first, key=lambda name: first[name])]
    assert waves == sorted(waves)
    for before, after in (
        ("statefulsets/db", "jobs/migrate"),
        ("deployments/redis", "jobs/migrate"),
        ("jobs/migrate", "deployments/shop"),
        ("deployments/shop", "ingresses/shop"),
    ):
        assert stage.settled(before) < first[after], (before, after)


async def test_the_first_example_syncs_in_order_and_a_second_run_writes_nothing(
    stage: NamespaceStage, wording: RecordedWording
) -> None:
    stage.slow_database(2)

    ran = await stage.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_order(stage)
    written = len(stage.writes())
    again = await stage.run("sync", "--yes")
    assert again.code == 0, again.stdout + again.stderr
    summary = again.stdout.splitlines()[-1].split(maxsplit=1)[1]
    wording(re.sub(r"\d+\.\d+s", "TIME", summary))
    assert len(stage.writes()) == written


async def test_without_waves_the_migration_fails_because_its_database_is_missing(
    stage: NamespaceStage,
) -> None:
    ran = await stage.run("sync", "--yes", "--ignore-waves")

    assert ran.code == 4, ran.stdout + ran.stderr
    end = ran.stdout[ran.stdout.index("✗") :]
    assert f"Job {stage.namespace}/migrate: Job has reached the specified backoff limit" in end
    assert f"Service {stage.namespace}/db" in end
    assert f"-n {stage.namespace} describe job migrate" in end


async def test_a_killed_rollout_continues_and_removed_objects_are_pruned(
    stage: NamespaceStage,
) -> None:
    stage.slow_database(2)
    killed = await stage.start("sync", "--yes", "-o", "json")
    assert killed.stdout is not None
    while json.loads(await killed.stdout.readline())["event"] != "gate.waiting":
        pass
    killed.kill()
    assert await killed.wait() == -signal.SIGKILL

    ran = await stage.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_order(stage)
    for name in ("ingress", "redis", "redis-service"):
        (stage.shop / f"{name}.yaml").unlink()
    before = len(stage.writes())
    kept = await stage.run("sync", "--yes")
    pruned = await stage.run("sync", "--yes", "--prune")
    assert (kept.code, pruned.code) == (0, 0), pruned.stdout + pruned.stderr
    messages = [(verb, name) for verb, name, _ in stage.here(stage.writes()[before:])]
    assert messages[0] == ("delete", "ingresses/shop")
    assert sorted(messages[1:]) == [("delete", "deployments/redis"), ("delete", "services/redis")]


async def test_an_encrypted_file_without_a_key_is_rejected_before_the_first_write(
    stage: NamespaceStage,
) -> None:
    path = stage.shop / "sealed.yaml"
    plain = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: sealed\nstringData:\n  a: {CANARY}\n"
    rule = ("--encrypted-regex", "^(data|stringData)$")
    path.write_bytes(encrypt(path, plain, AgeKey.generate(), *rule))

    ran = await stage.run("sync", "--yes")

    assert ran.code == 3, ran.stdout + ran.stderr
    assert "sealed.yaml" in ran.stderr
    assert "  hint: " in ran.stderr
    assert stage.here(stage.writes()) == []


async def test_a_missing_namespace_is_reported_before_the_first_write(
    stage: NamespaceStage,
) -> None:
    before = len(stage.writes())
    stage.namespace = "nowhere"

    ran = await stage.run("sync", "--yes")

    assert ran.code == 3, ran.stdout + ran.stderr
    assert lines_with(ran.stderr, "error[preflight.no-namespace]", "`nowhere`")
    assert len(stage.writes()) == before
