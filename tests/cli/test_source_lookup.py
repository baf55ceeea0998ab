"""Where the text of a unit comes from: branches, bootstraps, siblings, and absent files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.file_trees import (
    GIT_REPOSITORY,
    URL,
    application,
    commit,
    config_map,
    kustomization,
    lint_report,
    run_git,
    unit_names,
    write_files,
)
from tests.support.tidegate_runs import tidegate


def codes(root: Path) -> list[str]:
    return [finding.code for finding in lint_report(root).findings]


def unread(root: Path) -> list[str]:
    return [entry.message for entry in lint_report(root).unknown]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose Application follows a branch that is not checked out."""
    dev = application("web", "apps/web").replace("main", "dev")
    upstream = write_files(
        tmp_path / "upstream", {"cd/web.yaml": dev, "apps/web/a.yaml": config_map("a")}
    )
    commit(upstream)
    run_git(upstream, "checkout", "--quiet", "-b", "dev")
    (upstream / "apps/web/b.yaml").write_text(config_map("b"))
    commit(upstream)
    run_git(upstream, "checkout", "--quiet", "main")
    run_git(tmp_path, "clone", "--quiet", str(upstream), "clone")
    run_git(tmp_path / "clone", "remote", "set-url", "origin", URL)
    return tmp_path / "clone"


def test_a_branch_that_the_clone_tracks_is_used(clone: Path) -> None:
    ran = tidegate("render", clone, "--offline", "-o", "names")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["configmap/a", "configmap/b"] or "b" in ran.stdout


def test_a_branch_that_the_clone_does_not_have_is_named_with_the_option(clone: Path) -> None:
    run_git(clone, "update-ref", "-d", "refs/remotes/origin/dev")

    (message,) = unread(clone)

    assert "branch `dev`" in message
    assert f"--repo-map {URL}=PATH" in message


ARTIFACT = """\
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: all, namespace: flux-system}
spec:
  sources: [{alias: repo, kind: GitRepository, name: flux-system}]
  artifacts:
  - {name: infra, originRevision: "@repo", copy: [{from: "@repo/infra/**", to: "@artifact/"}]}
"""


def test_the_source_of_a_bootstrap_is_this_checkout_for_an_artifact_too(tmp_path: Path) -> None:
    unit = kustomization("infra", "./").replace(
        "{kind: GitRepository, name: flux-system, namespace: flux-system}",
        "{kind: ExternalArtifact, name: infra}",
    )
    root = write_files(
        tmp_path, {"clusters/p/a.yaml": ARTIFACT + unit, "infra/cm.yaml": config_map("a")}
    )

    report = lint_report(root)

    assert report.objects == 1
    assert "source.object" not in codes(root)


RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: fluentd}
spec:
  interval: 1h
  chart:
    spec: {chart: fluentd, version: 0.6.0, sourceRef: {kind: HelmRepository, name: fluent}}
"""
HELM_REPOSITORY = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: fluent}
spec: {interval: 1h, url: 'https://%s.example.com/charts'}
"""
FLUENT = "targetNamespace: fluent"


def test_a_helm_repository_is_found_in_the_namespace_that_a_sibling_sets(tmp_path: Path) -> None:
    units = kustomization("common", "./common", more=FLUENT) + kustomization(
        "app", "./app", more=FLUENT
    )
    files = {
        "c/f.yaml": GIT_REPOSITORY + units,
        "common/r.yaml": HELM_REPOSITORY % "charts",
        "app/h.yaml": RELEASE,
    }
    root = write_files(tmp_path, files)

    assert "source.object" not in codes(root)
    (message,) = unread(root)
    assert "https://charts.example.com/charts" in message


def test_a_source_of_the_same_cluster_takes_precedence(tmp_path: Path) -> None:
    files = {"app/h.yaml": RELEASE.replace("{name: fluentd}", "{name: fluentd, namespace: x}")}
    for name in ("a", "b"):
        units = kustomization("sources", f"./sources/{name}") + kustomization("app", "./app")
        files[f"clusters/{name}/f.yaml"] = GIT_REPOSITORY + units
        files[f"sources/{name}/r.yaml"] = (HELM_REPOSITORY % name).replace(
            "{name: fluent}", "{name: fluent, namespace: x}"
        )
    root = write_files(tmp_path, files)

    messages = [
        str(source["url"])
        for name in ("a", "b")
        for unit in json.loads(
            tidegate("units", root / "clusters" / name, "--offline", "-o", "json").stdout
        )["units"]
        if unit["kind"] == "HelmRelease"
        for source in unit["sources"]
    ]

    assert ["a.example" in messages[0], "b.example" in messages[1]] == [True, True]


def test_another_repository_with_a_similar_name_is_not_this_one(tmp_path: Path) -> None:
    other = application("web", "apps").replace("x/y.git", "x/y-apps.git")
    root = write_files(tmp_path, {"cd/web.yaml": other, "apps/a.yaml": config_map("a")})

    assert "units.repository-assumed" not in codes(root)
    assert lint_report(root).objects == 0


def test_a_fork_is_the_repository_that_its_units_name(tmp_path: Path) -> None:
    files = {"cd/web.yaml": application("web", "apps"), "apps/a.yaml": config_map("a")}
    root = write_files(tmp_path, files, url="git@github.com:fork/y.git")

    assert "units.repository-assumed" in codes(root)
    assert lint_report(root).objects == 1


def test_a_fork_with_another_name_is_that_repository_if_it_has_all_its_paths(
    tmp_path: Path,
) -> None:
    files = {
        "cd/units.yaml": application("web", "apps/web") + application("db", "apps/db"),
        "apps/web/a.yaml": config_map("a"),
        "apps/db/b.yaml": config_map("b"),
    }
    root = write_files(tmp_path, files, url="git@github.com:fork/renamed.git")

    assert "units.repository-assumed" in codes(root)
    assert lint_report(root).objects > 2


def test_a_clone_of_a_local_directory_is_the_repository_that_its_units_name(
    tmp_path: Path,
) -> None:
    files = {"cd/web.yaml": application("web", "apps"), "apps/a.yaml": config_map("a")}
    root = write_files(tmp_path, files, url="../mirrors/some-copy")

    assert "units.repository-assumed" in codes(root)
    assert lint_report(root).objects == 1


def test_an_example_in_a_subdirectory_is_its_own_repository_under_any_remote(
    tmp_path: Path,
) -> None:
    files = {
        "examples/shop/cd/web.yaml": application("web", "apps"),
        "examples/shop/apps/a.yaml": config_map("a"),
    }
    root = write_files(tmp_path, files, url="https://github.com/z/tools.git")

    for directory in (root, root / "examples/shop"):
        assert "units.repository-assumed" in codes(directory)
        assert lint_report(directory).objects == 1


CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "values.yaml": "a: 1\n",
    "values-prod.yaml": "a: 2\n",
    "templates/cm.yaml": config_map("web"),
}


def test_a_chart_with_several_values_files_suggests_a_choice(tmp_path: Path) -> None:
    root = write_files(tmp_path, CHART)

    findings = [finding for finding in lint_report(root).findings if finding.code == "units.values"]
    chosen = tidegate("lint", root, "--values", root / "values-prod.yaml", "-o", "json")

    (finding,) = findings
    assert "--values values-prod.yaml" in finding.fix
    assert "units.values" not in chosen.stdout


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"
SUBMODULES = '[submodule "base"]\n\tpath = vendor/base\n\turl = https://example.com/base.git\n'


def test_files_missing_in_a_checkout_are_reported(tmp_path: Path) -> None:
    files = {
        "cd/web.yaml": application("web", "apps"),
        "apps/a.yaml": config_map("a"),
        "apps/charts/redis-1.tgz": LFS,
        ".gitattributes": "*.tgz filter=lfs\n",
        ".gitmodules": SUBMODULES,
    }
    root = write_files(tmp_path / "r", files)
    (tmp_path / "outside.yaml").write_text(config_map("b"))
    (root / "apps" / "link.yaml").symlink_to("../../outside.yaml")

    by_code = {finding.code: finding for finding in lint_report(root).findings}

    assert "`apps/charts/redis-1.tgz`" in by_code["units.lfs"].message
    assert "`vendor/base`" in by_code["units.submodule"].message
    assert "`apps/link.yaml`" in by_code["units.outside"].message


def test_a_repository_with_all_its_files_has_no_such_finding(tmp_path: Path) -> None:
    files = {
        "cd/web.yaml": application("web", "apps"),
        "apps/a.yaml": config_map("a"),
        ".gitmodules": SUBMODULES,
        "vendor/base/a.txt": "",
    }
    root = write_files(tmp_path, files)

    assert not {"units.lfs", "units.submodule", "units.outside"} & {*codes(root)}
    assert unit_names(root) == ["Application/argocd/web"]
