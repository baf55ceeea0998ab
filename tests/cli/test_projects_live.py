"""AppProjects that are in the cluster and not in Git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox, definition
from tests.support.projects import NIGHT, of_project, project, two_units
from tests.support.repositories import namespace
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, Kind

CONFIG_MAP = Kind("", "v1", "ConfigMap")
PROJECTS = definition(Kind("argoproj.io", "v1alpha1", "AppProject"), "appprojects", status=False)
ALONE = pytest.mark.parametrize("target", ["argocd", "shop"])


@ALONE
def test_a_project_that_is_only_in_the_cluster_refuses_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    repository = two_units(tmp_path / "platform")
    repository.drop("projects/team.yaml")
    denied: Json = [{"group": "", "kind": "ConfigMap"}]
    alive = project("team", namespaceResourceBlacklist=denied)
    get_mapping(alive, "metadata")["namespace"] = target
    if target == "shop":
        web = of_project("web", "web")
        get_mapping(web, "metadata")["namespace"] = "shop"
        repository.put("apps/web.yaml", web)
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, namespace("shop"), PROJECTS, alive)

    ran = cluster.sync(repository.root)

    assert ran.code == 3
    assert any(
        "error[argo.project]" in line and "`team`" in line and "ConfigMap `web`" in line
        for line in ran.stderr.splitlines()
    )
    assert any(
        "`/ConfigMap`" in line and f"AppProject {target}/team" in line
        for line in ran.stderr.splitlines()
    )
    assert "argo.project-missing" not in ran.stderr
    assert "web" not in cluster.all(CONFIG_MAP, "shop")


def test_the_default_project_of_a_cluster_counts_and_that_of_the_repository_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = two_units(tmp_path / "platform")
    strict = project("default", destinations=[{"server": "*", "namespace": "argocd"}])
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, namespace("shop"), PROJECTS, strict)

    refused = cluster.sync(repository.root)
    repository.put("projects/default.yaml", project("default"))
    allowed = cluster.sync(repository.root)

    assert refused.code == 3
    assert any(
        "error[argo.project]" in line
        and "`default`" in line
        and "`shop`" in line
        and "`in-cluster`" in line
        for line in refused.stderr.splitlines()
    )
    assert allowed.code == 0, allowed.stderr


def test_windows_of_a_project_in_the_cluster_hold_its_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = two_units(tmp_path / "platform")
    repository.drop("projects/team.yaml")
    midnight: Json = {**NIGHT, "schedule": "0 0 * * *", "duration": "2h", "timeZone": ""}
    alive = project("team", syncWindows=[midnight])
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, namespace("shop"), PROJECTS, alive)

    ran = cluster.sync(repository.root)

    assert ran.code == 0, ran.stderr
    assert any(
        "warning[argo.window]" in line
        and "`Application/argocd/web`" in line
        and "2026-01-01 02:00:00 UTC" in line
        for line in ran.stderr.splitlines()
    )
    assert any(
        "`deny`" in line and "`0 0 * * *`" in line and "AppProject argocd/team" in line
        for line in ran.stderr.splitlines()
    )
