"""`tidegate app` on a real API server: what it shows, and in which order several go."""

from __future__ import annotations

import json

import pytest

from tests.e2e.test_statuses import WAVES, dev_applications, fleet
from tests.support.live_statuses import commit
from tests.support.repositories import application, deployment
from tests.support.tidegate_command import CommandResult, Tidegate
from tests.support.unit_families import Fleet

__all__ = ["fleet"]
pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


async def run(fleet: Fleet, verb: str, *words: str) -> CommandResult:
    root, *target = fleet.words
    user = Tidegate(fleet.repository.root.parent)
    return await user.run("argocd", "app", verb, *words, "-C", str(root), *map(str, target))


async def rolled_out(fleet: Fleet) -> None:
    dev_applications(fleet.repository)
    commit(fleet.repository.root)
    ran = await run(fleet, "sync", "--all", "--yes", "--timeout", "100s")
    assert ran.code == 0, ran.stdout + ran.stderr


async def test_app_list_shows_applications_with_their_wave_and_status(fleet: Fleet) -> None:
    await rolled_out(fleet)

    ran = await run(fleet, "list")

    heads, *rows = (line.split() for line in ran.stdout.splitlines())
    assert heads[:8] == [
        *("NAME", "CLUSTER", "NAMESPACE", "PROJECT", "WAVE", "STATUS", "HEALTH", "SYNCPOLICY")
    ]
    by_name = {row[0].rpartition("/")[2]: row[4:7] for row in rows}
    assert by_name == {name: [str(wave), "Synced", "Healthy"] for name, wave in WAVES.items()}


async def test_app_get_shows_resources_and_history(fleet: Fleet) -> None:
    await rolled_out(fleet)

    got = await run(fleet, "get", "fineract")
    document = json.loads((await run(fleet, "get", "fineract", "-o", "json")).stdout)
    history = await run(fleet, "history", "fineract")

    assert "Sync Status:        Synced to HEAD (" in got.stdout
    assert "Health Status:      Healthy" in got.stdout
    resources = document["status"]["resources"]
    assert [(resource["kind"], resource["syncWave"]) for resource in resources] == [
        ("Deployment", 0),
        ("ConfigMap", 1),
    ]
    result = json.dumps(document)
    assert "operationState" not in result, "controllers copy values there"
    assert [line.split()[0] for line in history.stdout.splitlines()] == ["ID", "0"]


SIX = {**WAVES, "redis": 1, "community-app": 2}
"""Six Applications in four waves."""


async def test_six_applications_in_four_waves_are_synced_in_order_and_deleted_in_reverse(
    fleet: Fleet,
) -> None:
    dev_applications(fleet.repository)
    for name in SIX.keys() - WAVES.keys():
        app = application(name, f"apps/{name}", wave=SIX[name], into="shop")
        app["metadata"]["labels"] = {"project": "fineract-dev"}  # type: ignore[index,call-overload]
        fleet.repository.put(f"applications/dev/{name}.yaml", app)
        fleet.repository.put(f"apps/{name}/all.yaml", deployment(name))
    commit(fleet.repository.root)

    synced = await run(fleet, "sync", "-l", "project=fineract-dev", "--yes", "--timeout", "100s")
    assert synced.code == 0, synced.stdout + synced.stderr
    made = list(fleet.firsts())
    deleted = await run(fleet, "delete", "-l", "project=fineract-dev", "--yes", "--timeout", "100s")
    assert deleted.code == 0, deleted.stdout + deleted.stderr

    gone = [name for verb, name in fleet.writes() if verb == "delete" and name in made]
    waves, left = _waves(made), _waves(gone)
    assert waves == sorted(waves) == [0, 1, 1, 2, 2]
    assert left == sorted(left, reverse=True) == waves[::-1]


def _waves(names: list[str]) -> list[int]:
    """Those of the Applications whose Deployments these are."""
    known = (name.removeprefix("deployments/") for name in names if name.startswith("deployments/"))
    return [SIX[name] for name in known]
