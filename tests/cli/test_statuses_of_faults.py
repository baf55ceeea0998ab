"""Statuses of units with faults, with objects to prune, and with unhealthy children."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_statuses import a_chain
from tests.support.persistent_sandbox import APPLICATION, KUSTOMIZATION, PersistentSandbox
from tests.support.repositories import (
    application,
    deployment,
    job,
    kustomization,
    setting,
    three_levels,
)
from tests.support.unit_conditions import condition
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject


def test_the_status_of_a_unit_shows_its_render_error_while_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")
    made.put("clusters/main/lost.yaml", kustomization("lost", "./nowhere"))

    ran = cluster.sync(made.root, "--skip-broken")

    assert ran.code == 4, ran.stdout + ran.stderr
    units = cluster.all(KUSTOMIZATION, "flux-system")
    assert condition(units["lost"], "Ready") == (
        "False",
        "ArtifactFailed",
        "kustomization path not found: stat ./nowhere: no such file or directory",
    )
    assert (condition(units["web"], "Ready") or ("",))[0] == "True"


def test_an_application_that_cannot_be_rendered_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    made.put("teams/lost.yaml", application("lost", "nowhere"))

    cluster.sync(made.root, "--skip-broken")

    lost = get_mapping(cluster.all(APPLICATION, "argocd")["lost"], "status")
    assert (get_text(lost, "sync", "status"), get_text(lost, "health", "status")) == (
        "Unknown",
        "Unknown",
    )
    assert [get_text(condition, "type") for condition in get_mappings(lost, "conditions")] == [
        "ComparisonError"
    ]


def test_an_unpruned_object_keeps_an_application_out_of_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    made.put("teams/red.yaml", application("red", "red", sync={"automated": {}}))
    cluster.sync(made.root)
    made.put("red/all.yaml", deployment("red-web"))

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    red = get_mapping(cluster.all(APPLICATION, "argocd")["red"], "status")
    assert get_text(red, "sync", "status") == "OutOfSync"
    (left,) = (
        resource
        for resource in get_mappings(red, "resources")
        if get_text(resource, "name") == "red-late"
    )
    assert (get_text(left, "status"), get_value(left, "requiresPruning")) == ("OutOfSync", True)
    assert get_text(red, "health", "status") == "Healthy"


def test_with_a_health_check_for_application_a_parent_has_the_health_of_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tmp_path / "argocd-cm.yaml"
    rules.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n"
        "  resource.customizations.health.argoproj.io_Application: |\n"
        "    hs = {status = 'Progressing', message = ''}\n"
        "    if obj.status ~= nil and obj.status.health ~= nil then\n"
        "      hs.status = obj.status.health.status\n"
        "    end\n"
        "    return hs\n"
    )
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, failing=["broken"])
    made = three_levels(tmp_path / "platform")

    ran = cluster.sync(made.root, "--health-rules", str(rules))

    assert ran.code == 0, ran.stdout + ran.stderr
    apps = cluster.all(APPLICATION, "argocd")
    assert {get_text(app, "status", "health", "status") for app in apps.values()} == {"Healthy"}
    made.put("red/all.yaml", job("broken"))
    cluster.sync(made.root, "--health-rules", str(rules))
    teams = get_mapping(cluster.all(APPLICATION, "argocd")["teams"], "status", "health")
    assert (get_text(teams, "status"), get_text(teams, "message")) == (
        "Degraded",
        "Caused by argoproj.io/Application:argocd/red",
    )


def test_the_status_includes_skipped_objects_that_are_in_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    options: JsonObject = {"syncOptions": ["ApplyOutOfSyncOnly=true", "CreateNamespace=true"]}
    sync: Json = {"automated": {"prune": True}, **options}
    made.put("teams/red.yaml", application("red", "red", into="red", sync=sync))
    cluster.sync(made.root)
    first = cluster.all(APPLICATION, "argocd")["red"]
    made.put("red/all.yaml", deployment("red-web", to="2"), setting("red-late", wave=1))

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    second = cluster.all(APPLICATION, "argocd")["red"]
    names = [
        [get_text(resource, "name") for resource in get_mappings(app, "status", "resources")]
        for app in (first, second)
    ]
    assert names == [["red-late", "red-web"]] * 2
    assert get_text(second, "status", "sync", "status") == "Synced"
    before = cluster.versions(APPLICATION, "argocd")
    cluster.sync(made.root)
    assert cluster.versions(APPLICATION, "argocd") == before


def test_a_partial_sync_writes_no_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    cluster.sync(made.root)
    before = cluster.versions(APPLICATION, "argocd")
    made.put("red/all.yaml", deployment("red-web", to="2"), setting("red-late", wave=1))

    ran = cluster.sync(made.root, "--resource", "apps:Deployment:red-web")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert cluster.versions(APPLICATION, "argocd") == before
