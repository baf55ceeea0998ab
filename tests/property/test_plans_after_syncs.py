"""`plan` and `sync` agree: after a rollout that passed, nothing is left to do."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.support.file_trees import write_files
from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.random_repositories import sound_repository
from tests.support.rollout_cases import EXAMPLES

SEEDS = range(max(1, EXAMPLES // 8))


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_sync_that_passed_a_plan_has_no_changes(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_files(tmp_path / "fleet", sound_repository(random.Random(seed)).files())
    sandbox = PersistentSandbox.make(tmp_path, monkeypatch)
    synced = sandbox.sync(root)
    assert synced.code == 0, synced.stdout + synced.stderr

    planned = sandbox.reach("plan", root, "--exit-code", "-o", "json")
    again = sandbox.sync(root, "-o", "json")

    objects = [
        entry for line in planned.stdout.splitlines() for entry in json.loads(line)["objects"]
    ]
    assert planned.code == 0, [entry for entry in objects if entry["operation"] != "keep"]
    assert {entry["operation"] for entry in objects} <= {"keep", "await"}
    written = [
        event
        for event in map(json.loads, again.stdout.splitlines())
        if event["event"] == "object.written"
    ]
    assert (again.code, written) == (0, [])
