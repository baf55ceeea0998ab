"""`app get` and `app resources`: a tree of all that an Application is made of, hooks among it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.kept_sandbox import KeptSandbox
from tests.support.repositories import (
    Repository,
    application,
    deployment,
    job,
    setting,
    three_levels,
)
from tests.support.tidegate_command import Ran
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject

POLICY = "argocd.argoproj.io/hook-delete-policy"
GOES: JsonObject = {POLICY: "HookSucceeded"}
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


def going(name: str, *, hook: str = "PreSync", generated: bool = False) -> JsonObject:
    """A hook that is deleted as soon as it has done its work."""
    made = job(name, hook=hook)
    metadata = get_mapping(made, "metadata")
    get_mapping(metadata, "annotations").update(GOES)
    if generated:
        metadata["generateName"] = f"{metadata.pop('name')}-"
    return made


def resources(ran: Ran) -> list[JsonObject]:
    assert ran.code == 0, ran.stderr
    result: list[JsonObject] = json.loads(ran.stdout)["status"]["resources"]
    return result


def test_hooks_and_what_objects_own_stand_in_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = KeptSandbox.make(tmp_path, monkeypatch), three_levels(tmp_path / "platform")
    get = ("app", "get", "base", "-C", made.root)

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
    assert before[0]["message"] == "it has not run"
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
    mine: list[JsonObject] = item.get("owned", [])  # type: ignore[assignment]
    return [each for child in mine for each in (child, *owned(child))]


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize("generated", [True, False])
def test_a_hook_that_was_deleted_is_known_to_have_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    served: bool,  # noqa: FBT001
    generated: bool,  # noqa: FBT001
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, served=served)
    ready, never = going("ready", generated=generated), going("never", hook="SyncFail")
    made = hooked(tmp_path / "platform", ready, never)
    assert cluster.sync(made.root).code == 0

    (ran, _, failing) = resources(cluster.reach("app", "get", "red", "-o", "json", "-C", made.root))

    assert (ran["hookType"], ran["hookPhase"]) == ("PreSync", "Succeeded")
    assert (failing["hookType"], failing["hookPhase"]) == ("SyncFail", "")


def test_a_hook_that_failed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, failing=["ready"])
    made = hooked(tmp_path / "platform", job("ready", hook="PreSync"))
    assert cluster.sync(made.root).code == 4

    row, other = resources(cluster.reach("app", "get", "red", "-o", "json", "-C", made.root))

    assert (row["hookPhase"], get_mapping(row, "health")["status"]) == ("Failed", "Degraded")
    assert "backoff limit" in str(get_mapping(row, "health")["message"])
    assert other["status"] == "OutOfSync"


def test_hooks_do_not_count_for_how_an_application_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch)
    made = hooked(tmp_path / "platform", going("ready"), deployment("web"))
    assert cluster.sync(made.root).code == 0
    made.put("red/all.yaml", job("ready", hook="PreSync"), deployment("web"), setting("web"))

    listed = cluster.reach("app", "list", "-C", made.root)

    assert "  Synced  Healthy  " in listed.stdout


def test_the_head_says_what_the_windows_of_its_project_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch)
    made = hooked(tmp_path / "platform", project=DENIES)

    ran = cluster.reach("app", "get", "red", "-C", made.root)

    assert "SyncWindow:         Manual Allowed\n" in ran.stdout, ran.stderr
    assert "Assigned Windows:   deny:* * * * *:1h\n" in ran.stdout
