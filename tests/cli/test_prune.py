"""`tidegate sync --prune`: what is deleted, what is kept, and what is reported."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.cluster_snapshots import scenario_of
from tests.support.deletions import a_directory, a_setting, deploy
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import tidegate
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import JsonObject


def run(shop: Path, *args: str) -> subprocess.CompletedProcess[str]:
    scenario = shop.parent / "scenario.yaml"
    return tidegate("sync", shop, "--name", "shop", "--sandbox", "--scenario", scenario, *args)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A directory of whose objects two have just left; one of them asks first."""
    folder = tmp_path / "shop"
    folder.mkdir()
    leaving = a_setting("precious", sync_options="Prune=confirm"), a_setting("old")

    async def make() -> JsonObject:
        world = build_sandbox(SimulationConfig())
        await deploy(world, a_directory(folder, a_setting("one"), *leaving))
        return await scenario_of(world)

    (tmp_path / "scenario.yaml").write_text(json.dumps(asyncio.run(make())))
    for name in ("1.yaml", "2.yaml"):
        (folder / name).unlink()
    return folder


def pruned(ran: subprocess.CompletedProcess[str]) -> list[str]:
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return sorted(event["name"] for event in events if event["event"] == "object.pruned")


def test_an_object_that_requires_confirmation_is_kept_and_reported(
    wording: RecordedWording, shop: Path
) -> None:
    shown, result = run(shop, "--prune"), run(shop, "--prune", "-o", "json")

    assert (shown.returncode, result.returncode) == (0, 0)
    wording(shown.stderr)
    note = json.loads(result.stderr)
    assert f"{note['severity']}: {note['message']}\n" == shown.stderr
    assert "ConfigMap default/precious" in note["message"]
    assert pruned(result) == ["old"]


def test_an_object_that_requires_confirmation_is_pruned_with_confirm_prune(shop: Path) -> None:
    ran = run(shop, "--prune", "--confirm-prune", "-o", "json")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert pruned(ran) == ["old", "precious"]


def test_without_prune_nothing_is_reported(shop: Path) -> None:
    ran = run(shop, "--confirm-prune", "-o", "json")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert pruned(ran) == []


def test_a_dry_run_shows_pruned_objects_in_their_wave(wording: RecordedWording, shop: Path) -> None:
    asking = run(shop, "--prune", "--dry-run").stdout.splitlines()
    agreed = run(shop, "--prune", "--confirm-prune", "--dry-run").stdout.splitlines()
    without = run(shop, "--dry-run").stdout

    wording(asking[1:3])
    wording((asking[-1], agreed[-1]))
    assert "prune" not in without
