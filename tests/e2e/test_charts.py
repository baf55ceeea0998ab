"""The charts on a real API server, with our kubelet and database operator, by its audit log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from plane import ControlPlane
from tests.e2e.namespace_stage import ROOT, NamespaceStage, open_namespace
from tests.e2e.output import lines_with
from tests.support.recorded_wording import RecordedWording

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

WAVES = {"databases": -3, "configmaps": -2, "secrets": -2, "serviceaccounts": -2, "jobs": -1}
"""All of Redis is in the wave -2, and everything else in the wave 0."""
GATES = ("databases/", "deployments/", "jobs/")
"""What takes a while to become what it should be."""
MIGRATES = ("--set", "migration.enabled=true")
"""WordPress has a migration only if it is enabled."""
NEXT = (*MIGRATES, "--set", "image.tag=v2")


class AuditedWrite(NamedTuple):
    """A write of the command."""

    verb: str
    name: str
    at: str

    @property
    def wave(self) -> int:
        resource = self.name.partition("/")[0]
        return -2 if self.name.endswith("-redis") else WAVES.get(resource, 0)


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane on which only we run the pods."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


@pytest.fixture(params=["laravel", "yii2", "wordpress-bedrock"])
async def stage(
    request: pytest.FixtureRequest, bare_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[NamespaceStage]:
    chart = ROOT / "charts" / str(request.param)
    scenario = chart / "given.yaml"
    async with open_namespace(bare_plane, tmp_path, files=chart, scenario=scenario) as opened:
        yield opened


def entries(stage: NamespaceStage, *, after: int = 0) -> list[AuditedWrite]:
    """The writes of the command in its namespace, in order, after a number of earlier ones."""
    return [AuditedWrite(*item) for item in stage.here(stage.writes())[after:]]


def assert_in_order(stage: NamespaceStage, written: list[AuditedWrite]) -> None:
    """The waves ran in order, each when the previous one was healthy."""
    waves = [entry.wave for entry in written]
    assert waves == sorted(waves)
    for wave in sorted(set(waves))[:-1]:
        later = next(entry for entry in written if entry.wave > wave)
        for entry in written:
            if entry.wave == wave and entry.name.startswith(GATES):
                assert stage.settled(entry.name) < later.at, (entry.name, later.name)


async def test_a_chart_is_applied_in_order_upgraded_once_and_deleted_in_reverse(
    stage: NamespaceStage,
) -> None:
    first = await stage.run("sync", "--yes", *MIGRATES)

    assert first.code == 0, first.stdout + first.stderr
    created = entries(stage)
    assert_in_order(stage, created)
    assert sorted({entry.wave for entry in created}) == [-3, -2, -1, 0]
    assert [entry.verb for entry in created if entry.wave == -1] == ["patch"]

    unchanged = await stage.run("sync", "--yes", *MIGRATES)

    assert unchanged.code == 0, unchanged.stdout + unchanged.stderr
    assert entries(stage, after=len(created)) == []

    second = await stage.run("sync", "--yes", *NEXT, "--prune")

    assert second.code == 0, second.stdout + second.stderr
    changed = entries(stage, after=len(created))
    written = [entry for entry in changed if entry.verb != "delete"]
    assert_in_order(stage, written)
    jobs = [entry.verb for entry in changed if entry.name.startswith("jobs/")]
    assert sorted(jobs) == ["delete", "patch"]

    removed = await stage.run("delete", *NEXT, "--yes")

    assert removed.code == 0, removed.stdout + removed.stderr
    gone = entries(stage, after=len(created) + len(changed))
    assert {entry.verb for entry in gone} == {"delete"}
    assert list(dict.fromkeys(entry.wave for entry in gone)) == [0, -1, -2, -3]
    assert len(gone) == len(created)


async def test_a_failed_migration_before_its_database_names_both(
    bare_plane: ControlPlane, tmp_path: Path, wording: RecordedWording
) -> None:
    chart = ROOT / "charts" / "laravel"
    scenario = chart / "given.yaml"
    values = ("migration.hook=argocd", "migration.allowHookBeforeDatabase=true")
    options = [word for value in values for word in ("--set", value)]
    async with open_namespace(bare_plane, tmp_path, files=chart, scenario=scenario) as stage:
        ran = await stage.run(
            "sync", "--yes", *options, "--set", "migration.activeDeadlineSeconds=5"
        )

    place = stage.namespace
    assert ran.code == 4, ran.stdout + ran.stderr
    (line,) = lines_with(ran.stdout, f"Secret {place}/shop-laravel-db-credentials ", "Database ")
    assert f"Database {place}/shop-laravel " in line
    assert "wave -3" in line
    wording(line.replace(place, "NAMESPACE"))
    assert 'Failed: Error: configmap "shop-laravel-db-credentials" not found' in ran.stdout
    assert "DeadlineExceeded" in ran.stdout
