"""`tidegate plan` on a cluster: the states of units, as Argo CD shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.repositories import setting, three_levels
from tidegate.model.k8s.objects import Json


def states_of(cluster: PersistentSandbox, root: Path) -> dict[str, tuple[Json, Json]]:
    """Sync status and health by the name of a unit."""
    ran = cluster.reach("plan", root, "--context", "a", "-o", "json")
    assert ran.code == 0, ran.stderr
    states = json.loads(ran.stdout)["states"]
    return {state["unit"].rpartition("/")[2]: (state["sync"], state["health"]) for state in states}


def test_a_plan_has_sync_status_and_health_of_each_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    made = three_levels(tmp_path / "platform")
    assert cluster.sync(made.root).code == 0

    deployed = states_of(cluster, made.root)
    made.put("red/more.yaml", setting("more"))
    changed = states_of(cluster, made.root)

    assert deployed == dict.fromkeys(
        ("root", "base", "teams", "red", "blue"), ("Synced", "Healthy")
    )
    assert changed == {**deployed, "red": ("OutOfSync", "Healthy")}
