"""AppProjects that live in a cluster and are not in Git, on a simulated one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kept_sandbox import KeptSandbox, definition
from tests.support.projects import NIGHT, of_project, project, two_units
from tests.support.repositories import namespace
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, Kind

CONFIG_MAP = Kind("", "v1", "ConfigMap")
PROJECTS = definition(Kind("argoproj.io", "v1alpha1", "AppProject"), "appprojects", status=False)
ALONE = pytest.mark.parametrize("where", ["argocd", "shop"])


@ALONE
def test_a_project_that_only_lives_in_the_cluster_refuses_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    repository = two_units(tmp_path / "platform")
    repository.drop("projects/team.yaml")
    denied: Json = [{"group": "", "kind": "ConfigMap"}]
    alive = project("team", namespaceResourceBlacklist=denied)
    get_mapping(alive, "metadata")["namespace"] = where
    if where == "shop":
        web = of_project("web", "web")
        get_mapping(web, "metadata")["namespace"] = "shop"
        repository.put("apps/web.yaml", web)
    cluster = KeptSandbox.make(tmp_path, monkeypatch, namespace("shop"), PROJECTS, alive)

    ran = cluster.sync(repository.root)

    assert ran.code == 3
    assert "project `team` does not allow ConfigMap `web` to" in ran.stderr
    assert f"has `/ConfigMap`: AppProject {where}/team in the cluster" in ran.stderr
    assert "argo.project-missing" not in ran.stderr
    assert "web" not in cluster.all(CONFIG_MAP, "shop")


def test_the_default_project_of_a_cluster_counts_and_that_of_the_repository_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = two_units(tmp_path / "platform")
    strict = project("default", destinations=[{"server": "*", "namespace": "argocd"}])
    cluster = KeptSandbox.make(tmp_path, monkeypatch, namespace("shop"), PROJECTS, strict)

    refused = cluster.sync(repository.root)
    repository.put("projects/default.yaml", project("default"))
    allowed = cluster.sync(repository.root)

    assert refused.code == 3
    assert "`default` does not allow namespace `shop` of `in-cluster`" in refused.stderr
    assert allowed.code == 0, allowed.stderr


def test_windows_of_a_project_in_the_cluster_hold_its_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = two_units(tmp_path / "platform")
    repository.drop("projects/team.yaml")
    midnight: Json = {**NIGHT, "schedule": "0 0 * * *", "duration": "2h", "timeZone": ""}
    alive = project("team", syncWindows=[midnight])
    cluster = KeptSandbox.make(tmp_path, monkeypatch, namespace("shop"), PROJECTS, alive)

    ran = cluster.sync(repository.root)

    assert ran.code == 0, ran.stderr
    assert "`Application/argocd/web` is held until 2026-01-01 02:00:00 UTC" in ran.stderr
    assert "by the `deny` window `0 0 * * *` at AppProject argocd/team in the cluster" in ran.stderr
