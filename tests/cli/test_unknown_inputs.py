"""Inputs that a repository does not contain: they are named, and are no mistakes."""

from __future__ import annotations

from pathlib import Path

from tests.support.file_trees import (
    URL,
    application,
    config_map,
    lint_codes,
    lint_report,
    unit_names,
    write_files,
)

CLUSTERS = f"""\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: all, namespace: argocd}}
spec:
  generators: [{{clusters: {{}}}}]
  template:
    metadata: {{name: web}}
    spec:
      project: default
      source: {{repoURL: "{URL}", targetRevision: main, path: PATH}}
      destination: {{name: "{{{{name}}}}", namespace: web}}
      syncPolicy: {{automated: {{}}}}
"""
PROJECT = """\
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: NAME, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{server: "*", namespace: "*"}]
"""
OF_PROJECT = application("web", "web").replace("project: default", "project: shop")
OTHER = application("db", "web").replace("project: default", "project: other")


def severities(root: Path) -> dict[str, str]:
    return {finding.code: finding.severity for finding in lint_report(root).findings}


def test_annotations_of_an_unknown_cluster_are_unknown(tmp_path: Path) -> None:
    text = CLUSTERS.replace("PATH", "'{{metadata.annotations.path}}'")
    root = write_files(tmp_path, {"set.yaml": text, "web/a.yaml": config_map("a")})

    assert lint_codes(root) == []
    assert unit_names(root) == ["ApplicationSet/argocd/all"]


def test_the_local_cluster_needs_no_secret(tmp_path: Path) -> None:
    text = CLUSTERS.replace("PATH", "web")
    root = write_files(tmp_path, {"set.yaml": text, "web/a.yaml": config_map("a")})

    assert "Application/argocd/web" in unit_names(root)


def test_a_project_of_another_chart_may_exist(tmp_path: Path) -> None:
    projects = PROJECT.replace("NAME", "other")
    chart = "apiVersion: v2\nname: projects\nversion: 1.0.0\n"
    files = {"apps/web.yaml": OF_PROJECT, "apps/db.yaml": OTHER, "web/a.yaml": config_map("a")}
    files["projects/other.yaml"] = projects
    missing = write_files(tmp_path / "missing", files)
    templated = {
        "bootstrap/Chart.yaml": chart,
        "bootstrap/templates/project.yaml": PROJECT.replace("NAME", "shop"),
    }
    created = write_files(tmp_path / "created", {**files, **templated})

    assert severities(missing)["argo.project-missing"] == "warning"
    assert severities(created)["argo.project-missing"] == "note"


def test_global_projects_that_are_not_known_may_permit_more(tmp_path: Path) -> None:
    strict = PROJECT.replace("NAME, ", "shop, labels: {inherits: all}, ").replace(
        "spec:\n", "spec:\n  namespaceResourceWhitelist: [{group: apps, kind: Deployment}]\n"
    )
    files = {"apps/web.yaml": OF_PROJECT, "projects/a.yaml": strict, "web/a.yaml": config_map("a")}
    denied = write_files(tmp_path / "denied", files)
    inherited = write_files(
        tmp_path / "inherited", {**files, "settings/globalProjects": "- projectName: all\n"}
    )

    assert severities(denied)["argo.project"] == "error"
    assert severities(inherited)["argo.project"] == "note"


def test_a_submodule_that_no_unit_uses_is_a_note(tmp_path: Path) -> None:
    modules = '[submodule "theme"]\n\tpath = site/theme\n\turl = https://example.com/theme.git\n'
    files = {"apps/web.yaml": application("web", "web"), "web/a.yaml": config_map("a")}
    unused = write_files(tmp_path / "unused", {**files, ".gitmodules": modules})
    used = write_files(
        tmp_path / "used",
        {**files, ".gitmodules": modules, "web/kustomization.yaml": "resources: [../site/theme]\n"},
    )

    assert severities(unused)["units.submodule"] == "note"
    assert severities(used)["units.submodule"] == "warning"


def test_a_missing_base_beside_known_objects_is_no_error_of_lint(tmp_path: Path) -> None:
    overlay = "resources: ['https://git.example.invalid/base//web?ref=v1', a.yaml]\n"
    files = {"apps/web.yaml": application("web", "web"), "web/kustomization.yaml": overlay}
    root = write_files(tmp_path, {**files, "web/a.yaml": config_map("a")})

    assert lint_codes(root) == []


def test_a_namespace_of_an_unknown_kind_may_be_ignored(tmp_path: Path) -> None:
    thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, namespace: elsewhere}\n"
    app = application("web", "web").replace(
        "syncPolicy: {", "syncPolicy: {syncOptions: [CreateNamespace=true], "
    )
    unknown = write_files(tmp_path / "a", {"apps/web.yaml": app, "web/a.yaml": thing})
    known = write_files(
        tmp_path / "b", {"apps/web.yaml": app, "web/a.yaml": config_map("a", "elsewhere")}
    )

    assert severities(unknown)["ORD061"] == "note"
    assert severities(known)["ORD061"] == "warning"
