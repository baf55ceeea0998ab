"""`app get` and `app resources`: the objects of an Application as a tree, with its hooks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    Repository,
    application,
    deployment,
    job,
    setting,
    three_levels,
)
from tests.support.tidegate_command import CommandResult
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject

POLICY = "argocd.argoproj.io/hook-delete-policy"
DELETED_ON_SUCCESS: JsonObject = {POLICY: "HookSucceeded"}
DENIES: JsonObject = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AppProject",
    "metadata": {"name": "default", "namespace": "argocd"},
    "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "name": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        "syncWindows": [
            {
                "kind": "deny",
                "schedule": "* * * * *",
                "duration": "1h",
                "applications": ["*"],
                "manualSync": True,
            }
        ],
    },
}


def hooked(root: Path, *hooks: JsonObject, project: JsonObject | None = None) -> Repository:
    made = Repository(root)
    made.put("apps/red.yaml", application("red", "red", into="default"))
    made.put("red/all.yaml", *hooks, setting("web"))
    if project is not None:
        made.put("projects/default.yaml", project)
    return made


def self_deleting_hook(name: str, *, hook: str = "PreSync", generated: bool = False) -> JsonObject:
    """A hook that is deleted when it has succeeded."""
    made = job(name, hook=hook)
    metadata = get_mapping(made, "metadata")
    get_mapping(metadata, "annotations").update(DELETED_ON_SUCCESS)
    if generated:
        metadata["generateName"] = f"{metadata.pop('name')}-"
    return made


def resources(ran: CommandResult) -> list[JsonObject]:
    assert ran.code == 0, ran.stderr
    result: list[JsonObject] = json.loads(ran.stdout)["status"]["resources"]
    return result


def test_hooks_and_owned_objects_are_listed_in_the_order_of_a_sync(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    get = ("argocd", "app", "get", "base", "-C", made.root)

    before = resources(cluster.reach(*get, "-o", "json"))
    assert cluster.sync(made.root).code == 0
    after = resources(cluster.reach(*get, "-o", "json"))
    wide, tree = cluster.reach(*get).stdout, cluster.reach(*get, "-o", "tree").stdout

    assert [(item["name"], item["syncPhase"], item["syncWave"]) for item in before] == [
        ("base-prepare", "PreSync", 0),
        ("base-web", "Sync", 0),
        ("base-late", "Sync", 1),
        ("base-after", "PostSync", 0),
    ]
    assert [item.get("hookPhase") for item in before] == ["", None, None, ""]
    wording(str(before[0]["message"]))
    assert [item.get("hookPhase") for item in after] == ["Succeeded", None, None, "Succeeded"]
    assert [item["kind"] for item in owned(after[1])] == ["ReplicaSet", "Pod"]
    assert [item["kind"] for item in owned(after[0])] == ["Pod"]
    assert {item["health"]["status"] for row in after for item in owned(row)} == {"Healthy"}  # type: ignore[index,call-overload]
    heads = ["PHASE", "WAVE", "GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK"]
    table = wide.partition("\n\n")[2].splitlines()
    assert table[0].split() == [*heads, "MESSAGE"]
    assert table[1].split()[:8] == [
        *("PreSync", "0", "batch", "Job", "shop", "base-prepare", "Succeeded", "Healthy")
    ]
    drawn = [line.split()[0] for line in tree.partition("\n\n")[2].splitlines()]
    assert drawn[:2] == ["KIND/NAME", "Job/base-prepare"]
    assert [line.partition("-")[0] for line in drawn[2:6]] == [
        *("└─Pod/base", "Deployment/base", "└─ReplicaSet/base", "└─Pod/base")
    ]


def owned(item: JsonObject) -> list[JsonObject]:
    """What an object owns, and what that owns."""
    children: list[JsonObject] = item.get("owned", [])  # type: ignore[assignment]
    return [each for child in children for each in (child, *owned(child))]


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize("generated", [True, False])
def test_a_deleted_hook_is_listed_with_its_phase(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    served: bool,  # noqa: FBT001
    generated: bool,  # noqa: FBT001
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served)
    ready, never = (
        self_deleting_hook("ready", generated=generated),
        self_deleting_hook("never", hook="SyncFail"),
    )
    made = hooked(tmp_path / "platform", ready, never)
    assert cluster.sync(made.root).code == 0

    (first, _, failing) = resources(
        cluster.reach("argocd", "app", "get", "red", "-o", "json", "-C", made.root)
    )

    assert (first["hookType"], first["hookPhase"]) == ("PreSync", "Succeeded")
    assert (failing["hookType"], failing["hookPhase"]) == ("SyncFail", "")


def test_a_failed_hook_is_listed_with_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, failing=["ready"])
    made = hooked(tmp_path / "platform", job("ready", hook="PreSync"))
    assert cluster.sync(made.root).code == 4

    row, other = resources(
        cluster.reach("argocd", "app", "get", "red", "-o", "json", "-C", made.root)
    )

    assert (row["hookPhase"], get_mapping(row, "health")["status"]) == ("Failed", "Degraded")
    assert "backoff limit" in str(get_mapping(row, "health")["message"])
    assert other["status"] == "OutOfSync"


def test_hooks_do_not_count_for_the_status_of_an_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    made = hooked(tmp_path / "platform", self_deleting_hook("ready"), deployment("web"))
    assert cluster.sync(made.root).code == 0
    made.put("red/all.yaml", job("ready", hook="PreSync"), deployment("web"), setting("web"))

    listed = cluster.reach("argocd", "app", "list", "-C", made.root)

    assert "  Synced  Healthy  " in listed.stdout


def test_the_header_shows_the_sync_windows_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    made = hooked(tmp_path / "platform", project=DENIES)

    ran = cluster.reach("argocd", "app", "get", "red", "-C", made.root)

    assert "SyncWindow:         Manual Allowed\n" in ran.stdout, ran.stderr
    assert "Assigned Windows:   deny:* * * * *:1h\n" in ran.stdout
