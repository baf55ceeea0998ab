"""Statuses of units after a rollout, on a simulated cluster that serves their kinds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import APPLICATION, KUSTOMIZATION, PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    Repository,
    deployment,
    git_repository,
    job,
    kustomization,
    namespace,
    setting,
    three_levels,
)
from tests.support.unit_conditions import CONFIG_MAP, condition, list_results
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind

REVISION = re.compile(r"working-tree@sha256:[0-9a-f]{64}")


def a_chain(root: Path) -> Repository:
    """`ground`, then `data`, then `web`, and a parent of all that renders itself."""
    made = Repository(root)
    made.put("clusters/main/source.yaml", git_repository())
    made.put("clusters/main/self.yaml", kustomization("flux-system", "./clusters/main", into=""))
    made.put("clusters/main/ground.yaml", kustomization("ground", "./ground", into=""))
    made.put("clusters/main/data.yaml", kustomization("data", "./data", after=("ground",)))
    made.put("clusters/main/web.yaml", kustomization("web", "./web", after=("data",)))
    made.put("ground/all.yaml", namespace("shop"))
    made.put("data/all.yaml", deployment("data"), job("prepare"))
    made.put("web/all.yaml", setting("web"))
    return made


def test_applications_have_a_synced_and_healthy_status_with_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "note: " not in ran.stderr
    apps = cluster.all(APPLICATION, "argocd")
    assert {name: get_text(app, "status", "sync", "status") for name, app in apps.items()} == (
        dict.fromkeys(("base", "blue", "red", "teams"), "Synced")
    )
    assert {get_text(app, "status", "health", "status") for app in apps.values()} == {"Healthy"}
    base = get_mapping(apps["base"], "status")
    state = get_mapping(base, "operationState")
    assert (get_text(state, "phase"), get_text(state, "message")) == (
        "Succeeded",
        "successfully synced (all tasks run)",
    )
    assert get_text(state, "startedAt") < get_text(state, "finishedAt")
    assert [
        (
            get_text(resource, "name"),
            get_text(resource, "syncPhase"),
            get_text(resource, "hookType"),
            get_text(resource, "hookPhase"),
        )
        for resource in get_mappings(state, "syncResult", "resources")
    ] == [
        ("base-prepare", "PreSync", "PreSync", "Succeeded"),
        ("base-web", "Sync", "", "Succeeded"),
        ("base-late", "Sync", "", "Succeeded"),
        ("base-after", "PostSync", "PostSync", "Succeeded"),
    ]
    assert [
        (get_text(resource, "name"), get_value(resource, "syncWave"))
        for resource in get_mappings(base, "resources")
    ] == [
        ("base-late", 1),
        ("base-web", None),
        ("base-after", None),
        ("base-prepare", None),
    ]
    assert [get_value(item, "id") for item in get_mappings(base, "history")] == [0]
    assert REVISION.fullmatch(get_text(base, "sync", "revision"))
    assert get_text(base, "sync", "comparedTo", "source", "path") == "base"
    assert get_list(base, "summary", "images") == ["main:1"]
    assert get_value(apps["teams"], "status", "summary", "isAppOfApps") is True
    assert {("base", "OperationStarted"), ("base", "OperationCompleted")} <= list_results(
        cluster, "argocd"
    )


def test_the_spec_of_an_application_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    cluster.sync(made.root)

    app = cluster.all(APPLICATION, "argocd")["red"]

    owners = {
        get_text(managed_field, "manager"): managed_field
        for managed_field in get_mappings(app, "metadata", "managedFields")
    }
    assert set(get_mapping(owners["argocd-application-controller"], "fieldsV1")) == {"f:status"}
    assert "f:status" not in get_mapping(owners["argocd-controller"], "fieldsV1")
    assert get_text(app, "spec", "source", "path") == "red"


@pytest.mark.parametrize("kind", [APPLICATION, KUSTOMIZATION])
def test_a_second_run_writes_no_status(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    is_argo = kind is APPLICATION
    user_home = "argocd" if is_argo else "flux-system"
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    made = (three_levels if is_argo else a_chain)(tmp_path / "platform")
    cluster.sync(made.root)
    before, events = cluster.versions(kind, user_home), list_results(cluster, user_home)

    again = cluster.sync(made.root)

    wording(line for line in again.stdout.splitlines() if "  rollout  " in line)
    assert cluster.versions(kind, user_home) == before
    assert list_results(cluster, user_home) == events


def test_a_new_revision_is_in_every_status_and_in_the_history_of_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    cluster.sync(made.root)
    first = cluster.all(APPLICATION, "argocd")
    made.put("red/all.yaml", deployment("red-web", to="2"), setting("red-late", wave=1))

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    second = cluster.all(APPLICATION, "argocd")
    revisions = {get_text(app, "status", "sync", "revision") for app in second.values()}
    assert len(revisions) == 1
    assert revisions.isdisjoint(
        get_text(app, "status", "sync", "revision") for app in first.values()
    )
    counts = {name: len(get_mappings(app, "status", "history")) for name, app in second.items()}
    assert counts == {"base": 1, "blue": 1, "red": 2, "teams": 1}
    assert [get_value(item, "id") for item in get_mappings(second["red"], "status", "history")] == [
        0,
        1,
    ]
    for name in ("base", "blue", "teams"):
        done = [get_value(apps[name], "status", "operationState") for apps in (first, second)]
        assert done[0] == done[1], name


def test_a_failed_child_has_a_reason_and_its_parent_is_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, failing=["broken"])
    made = three_levels(tmp_path / "platform")
    made.put("red/all.yaml", job("broken"), setting("red-late", wave=1))

    ran = cluster.sync(made.root)

    assert ran.code == 4, ran.stdout + ran.stderr
    apps = cluster.all(APPLICATION, "argocd")
    red = get_mapping(apps["red"], "status")
    assert get_text(red, "operationState", "phase") == "Failed"
    assert "one or more synchronization tasks completed unsuccessfully, reason: " in get_text(
        red, "operationState", "message"
    )
    assert (get_text(red, "health", "status"), get_text(red, "health", "message")) == (
        "Degraded",
        "Caused by batch/Job:shop/broken",
    )
    assert get_text(red, "sync", "status") == "OutOfSync"
    (error,) = get_mappings(red, "conditions")
    assert get_text(error, "type") == "SyncError"
    assert get_text(error, "message").startswith(
        "Failed last sync attempt to [working-tree@sha256:"
    )
    assert get_mappings(red, "history") == []
    assert get_text(apps["teams"], "status", "sync", "status") == "OutOfSync"
    assert ("red", "OperationCompleted") in list_results(cluster, "argocd")


def test_the_status_of_kustomizations_has_their_revision_and_inventory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "note: " not in ran.stderr
    units = cluster.all(KUSTOMIZATION, "flux-system")
    assert set(units) == {"data", "flux-system", "ground", "web"}
    for name, unit in units.items():
        revision = get_text(unit, "status", "lastAppliedRevision")
        assert REVISION.fullmatch(revision), name
        assert condition(unit, "Ready") == (
            "True",
            "ReconciliationSucceeded",
            f"Applied revision: {revision}",
        )
        assert condition(unit, "Reconciling") is None
        assert get_text(unit, "status", "lastAttemptedRevision") == revision
        observed = get_value(unit, "status", "observedGeneration")
        assert observed == get_value(unit, "metadata", "generation")
    healthy = condition(units["data"], "Healthy")
    assert healthy is not None
    assert healthy[:2] == ("True", "Succeeded")
    assert re.fullmatch(r"Health check passed in [0-9.]+s", healthy[2])
    assert get_value(units["data"], "status", "inventory", "entries") == [
        {"id": "shop_data_apps_Deployment", "v": "v1"},
        {"id": "shop_prepare_batch_Job", "v": "v1"},
    ]
    assert get_value(units["ground"], "status", "inventory", "entries") == [
        {"id": "_shop__Namespace", "v": "v1"}
    ]
    mappings = get_mappings(units["flux-system"], "status", "inventory", "entries")
    assert "flux-system_flux-system_kustomize.toolkit.fluxcd.io_Kustomization" in [
        get_text(item, "id") for item in mappings
    ]


def test_the_status_of_a_blocked_unit_names_the_failed_dependency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, failing=["prepare"])
    made = a_chain(tmp_path / "platform")

    ran = cluster.sync(made.root)

    assert ran.code == 4, ran.stdout + ran.stderr
    units = cluster.all(KUSTOMIZATION, "flux-system")
    ready = condition(units["data"], "Ready")
    assert ready is not None
    assert ready[:2] == ("False", "HealthCheckFailed")
    assert re.fullmatch(
        r"health check failed after [0-9a-z.]+: failed early due to stalled resources: "
        r"\[Job/shop/prepare status: 'Failed'\]",
        ready[2],
    )
    assert condition(units["data"], "Healthy") == (
        "False",
        "HealthCheckFailed",
        "failed early due to stalled resources: [Job/shop/prepare status: 'Failed']",
    )
    reconciling = condition(units["data"], "Reconciling")
    assert reconciling is not None
    assert reconciling[:2] == ("True", "ProgressingWithRetry")
    assert get_value(units["data"], "status", "lastAppliedRevision") is None
    assert condition(units["web"], "Ready") == (
        "False",
        "DependencyNotReady",
        "dependency 'flux-system/data' is not ready",
    )
    assert condition(units["ground"], "Ready") is not None
    assert {("data", "HealthCheckFailed"), ("web", "DependencyNotReady")} <= list_results(
        cluster, "flux-system"
    )


def test_the_status_shows_a_stopped_run_and_then_the_completed_one(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")

    stopped = cluster.sync(made.root, "--timeout", "2s")

    assert stopped.code == 8, stopped.stdout + stopped.stderr
    data = cluster.all(KUSTOMIZATION, "flux-system")["data"]
    ready = condition(data, "Ready")
    assert ready is not None
    assert ready[:2] == ("False", "ReconciliationFailed")
    wording(ready[2])
    cluster.sync(made.root)
    units = cluster.all(KUSTOMIZATION, "flux-system").values()
    assert {(condition(unit, "Ready") or ("",))[0] for unit in units} == {"True"}


def test_a_status_that_cannot_be_written_is_reported_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault: Json = {"effect": "error", "when": {"verb": "patch", "kind": "Kustomization"}}
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, faults=[fault])
    made = a_chain(tmp_path / "platform")

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert any(
        "note:" in line
        and "`Kustomization/flux-system/" in line
        and "Internal error occurred" in line
        for line in ran.stderr.splitlines()
    )
    assert "web" in cluster.all(CONFIG_MAP, "shop")


def test_without_the_kinds_of_units_no_status_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=False)

    ran = cluster.sync(three_levels(tmp_path / "platform").root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "note: " not in ran.stderr
    assert list_results(cluster, "argocd") == set()


def test_a_status_that_was_changed_by_hand_is_corrected_by_the_next_run(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")
    cluster.sync(made.root)
    wrong: JsonObject = {"status": {"conditions": [], "lastAppliedRevision": "main@sha1:0"}}
    cluster.patch(KUSTOMIZATION, "flux-system", "web", wrong, status=True)

    again = cluster.sync(made.root)

    wording(line for line in again.stdout.splitlines() if "  rollout  " in line)
    unit = cluster.all(KUSTOMIZATION, "flux-system")["web"]
    assert (condition(unit, "Ready") or ("",))[0] == "True"
    assert REVISION.fullmatch(get_text(unit, "status", "lastAppliedRevision"))
