"""`approve PATH --unit UNIT`: by a name in PATH, or by an identity that needs no repository."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.rolling_appset import Ladder
from tests.support.served_cluster import served_cluster
from tests.support.tidegate_runs import tidegate


def repository_with_approval(folder: Path) -> Path:
    """Write an ApplicationSet whose only Application `b` needs an approval."""
    folder.mkdir()
    ladder = Ladder(folder)
    ladder.step(1, "b", most="'0%'")
    return ladder.write()


async def test_a_unit_of_the_path_is_approved_by_its_name(tmp_path: Path) -> None:
    root = repository_with_approval(tmp_path / "platform")

    async with served_cluster(tmp_path) as cluster:
        stopped = await cluster.roll_out("sync", root, "--yes", "--offline", "--timeout", "4s")
        unknown = await cluster.run("approve", root, "--unit", "c", "--offline", "-o", "json")
        approved = await cluster.run("approve", root, "--unit", "b", "--offline", "-o", "json")
        resumed = await cluster.roll_out("sync", root, "--yes", "--offline", "--timeout", "60s")

    assert stopped.code == 8, stopped.stderr
    assert unknown.code == 2, unknown.stderr
    assert json.loads(approved.stdout)["unit"] == "Application/argocd/b", approved.stderr
    assert resumed.code == 0, resumed.stderr


async def test_an_identity_needs_no_repository(tmp_path: Path) -> None:
    root = repository_with_approval(tmp_path / "platform")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    async with served_cluster(tmp_path) as cluster:
        before = await cluster.run("approve", elsewhere, "--unit", "Application/argocd/b")
        await cluster.roll_out("sync", root, "--yes", "--offline", "--timeout", "4s")
        approved = await cluster.run("approve", elsewhere, "--unit", "Application/argocd/b")

    assert before.code == 3, before.stderr
    assert approved.code == 0, approved.stderr


def test_a_unit_is_required() -> None:
    ran = tidegate("approve", "-o", "json")

    assert (ran.returncode, json.loads(ran.stderr)["code"]) == (2, "usage")
