"""`tidegate sync` on a real API server whose pods our kubelet runs, by the server's audit log."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.harbour import WAVES, Harbour, open_harbour
from tests.e2e.output import lines_with
from tests.support.recorded_wording import RecordedWording
from tests.support.sops_program import AgeKey, encrypt

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

CANARY = "puffin-sleeps-at-sea"


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane whose pods nobody but us runs."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


@pytest.fixture
async def harbour(bare_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Harbour]:
    async with open_harbour(bare_plane, tmp_path) as harbour:
        yield harbour


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
    harbour: Harbour, wording: RecordedWording
) -> None:
    harbour.slow_database(2)

    ran = await harbour.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_order(harbour)
    written = len(harbour.writes())
    again = await harbour.run("sync", "--yes")
    assert again.code == 0, again.stdout + again.stderr
    summary = again.stdout.splitlines()[-1].split(maxsplit=1)[1]
    wording(re.sub(r"\d+\.\d+s", "TIME", summary))
    assert len(harbour.writes()) == written


async def test_without_waves_the_migration_fails_because_its_database_is_missing(
    harbour: Harbour,
) -> None:
    ran = await harbour.run("sync", "--yes", "--ignore-waves")

    assert ran.code == 4, ran.stdout + ran.stderr
    end = ran.stdout[ran.stdout.index("✗") :]
    assert f"Job {harbour.namespace}/migrate: Job has reached the specified backoff limit" in end
    assert f"Service {harbour.namespace}/db " in end
    assert f"-n {harbour.namespace} describe job migrate" in end


async def test_a_rollout_that_is_killed_goes_on_and_what_left_git_is_pruned(
    harbour: Harbour,
) -> None:
    harbour.slow_database(2)
    killed = await harbour.start("sync", "--yes", "-o", "json")
    assert killed.stdout is not None
    while json.loads(await killed.stdout.readline())["event"] != "gate.waiting":
        pass
    killed.kill()
    assert await killed.wait() == -signal.SIGKILL

    ran = await harbour.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_order(harbour)
    for name in ("ingress", "redis", "redis-service"):
        (harbour.shop / f"{name}.yaml").unlink()
    before = len(harbour.writes())
    kept = await harbour.run("sync", "--yes")
    pruned = await harbour.run("sync", "--yes", "--prune")
    assert (kept.code, pruned.code) == (0, 0), pruned.stdout + pruned.stderr
    messages = [(verb, name) for verb, name, _ in harbour.here(harbour.writes()[before:])]
    assert messages[0] == ("delete", "ingresses/shop")
    assert sorted(messages[1:]) == [("delete", "deployments/redis"), ("delete", "services/redis")]


async def test_an_encrypted_file_that_no_key_opens_is_refused_and_nothing_is_written(
    harbour: Harbour,
) -> None:
    path = harbour.shop / "sealed.yaml"
    plain = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: sealed\nstringData:\n  a: {CANARY}\n"
    rule = ("--encrypted-regex", "^(data|stringData)$")
    path.write_bytes(encrypt(path, plain, AgeKey.generate(), *rule))

    ran = await harbour.run("sync", "--yes")

    assert ran.code == 3, ran.stdout + ran.stderr
    assert "sealed.yaml" in ran.stderr
    assert "  hint: " in ran.stderr
    assert harbour.here(harbour.writes()) == []


async def test_a_missing_namespace_is_reported_before_anything_is_written(
    harbour: Harbour,
) -> None:
    before = len(harbour.writes())
    harbour.namespace = "nowhere"

    ran = await harbour.run("sync", "--yes")

    assert ran.code == 3, ran.stdout + ran.stderr
    assert lines_with(ran.stderr, "error[preflight.no-namespace]", "`nowhere`")
    assert len(harbour.writes()) == before
