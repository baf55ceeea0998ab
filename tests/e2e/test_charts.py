"""The charts on a real API server, with our kubelet and database operator, by its audit log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from plane import ControlPlane
from tests.e2e.harbour import ROOT, Harbour, open_harbour
from tests.e2e.output import lines_with
from tests.support.recorded_wording import RecordedWording

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

WAVES = {"databases": -3, "configmaps": -2, "secrets": -2, "serviceaccounts": -2, "jobs": -1}
"""All of Redis is in the wave -2, and everything else in the wave 0."""
GATES = ("databases/", "deployments/", "jobs/")
"""What takes a while to become what it should be."""
MIGRATES = ("--set", "migration.enabled=true")
"""WordPress has no migration unless it is asked for one."""
NEXT = (*MIGRATES, "--set", "image.tag=v2")


class Deed(NamedTuple):
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
    """A control plane whose pods nobody but us runs."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


@pytest.fixture(params=["laravel", "yii2", "wordpress-bedrock"])
async def harbour(
    request: pytest.FixtureRequest, bare_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[Harbour]:
    chart = ROOT / "charts" / str(request.param)
    scenario = chart / "given.yaml"
    async with open_harbour(bare_plane, tmp_path, files=chart, scenario=scenario) as opened:
        yield opened


def deeds(harbour: Harbour, *, after: int = 0) -> list[Deed]:
    """What the command wrote in its namespace, in order, without the first so many."""
    return [Deed(*item) for item in harbour.here(harbour.writes())[after:]]


def assert_in_order(harbour: Harbour, written: list[Deed]) -> None:
    """Waves came one after another, each behind what the one before it had to become."""
    waves = [deed.wave for deed in written]
    assert waves == sorted(waves)
    for wave in sorted(set(waves))[:-1]:
        behind = next(deed for deed in written if deed.wave > wave)
        for deed in written:
            if deed.wave == wave and deed.name.startswith(GATES):
                assert harbour.settled(deed.name) < behind.at, (deed.name, behind.name)


async def test_a_chart_comes_in_order_is_upgraded_once_and_goes_in_reverse(
    harbour: Harbour,
) -> None:
    first = await harbour.run("sync", "--yes", *MIGRATES)

    assert first.code == 0, first.stdout + first.stderr
    brought = deeds(harbour)
    assert_in_order(harbour, brought)
    assert sorted({deed.wave for deed in brought}) == [-3, -2, -1, 0]
    assert [deed.verb for deed in brought if deed.wave == -1] == ["patch"]

    unchanged = await harbour.run("sync", "--yes", *MIGRATES)

    assert unchanged.code == 0, unchanged.stdout + unchanged.stderr
    assert deeds(harbour, after=len(brought)) == []

    second = await harbour.run("sync", "--yes", *NEXT, "--prune")

    assert second.code == 0, second.stdout + second.stderr
    changed = deeds(harbour, after=len(brought))
    written = [deed for deed in changed if deed.verb != "delete"]
    assert_in_order(harbour, written)
    jobs = [deed.verb for deed in changed if deed.name.startswith("jobs/")]
    assert sorted(jobs) == ["delete", "patch"]

    removed = await harbour.run("delete", *NEXT, "--yes")

    assert removed.code == 0, removed.stdout + removed.stderr
    gone = deeds(harbour, after=len(brought) + len(changed))
    assert {deed.verb for deed in gone} == {"delete"}
    assert list(dict.fromkeys(deed.wave for deed in gone)) == [0, -1, -2, -3]
    assert len(gone) == len(brought)


async def test_a_migration_before_its_database_fails_and_both_are_named(
    bare_plane: ControlPlane, tmp_path: Path, wording: RecordedWording
) -> None:
    chart = ROOT / "charts" / "laravel"
    scenario = chart / "given.yaml"
    values = ("migration.hook=argocd", "migration.allowHookBeforeDatabase=true")
    options = [word for value in values for word in ("--set", value)]
    async with open_harbour(bare_plane, tmp_path, files=chart, scenario=scenario) as harbour:
        ran = await harbour.run(
            "sync", "--yes", *options, "--set", "migration.activeDeadlineSeconds=5"
        )

    place = harbour.namespace
    assert ran.code == 4, ran.stdout + ran.stderr
    (line,) = lines_with(ran.stdout, f"Secret {place}/shop-laravel-db-credentials ", "Database ")
    assert f"Database {place}/shop-laravel " in line
    assert "wave -3" in line
    wording(line.replace(place, "NAMESPACE"))
    assert 'Failed: Error: configmap "shop-laravel-db-credentials" not found' in ran.stdout
    assert "DeadlineExceeded" in ran.stdout
