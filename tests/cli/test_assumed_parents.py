"""Parents that no file defines, data and templates: they are no units of the repository."""

from __future__ import annotations

from pathlib import Path

from tests.support.file_trees import (
    GIT_REPOSITORY,
    application,
    config_map,
    kustomization,
    lint_codes,
    lint_report,
    unit_names,
    write_files,
)

BESIDE = {
    "apps/late.yaml": application("late", "manifests/late", wave="3"),
    "apps/web.yaml": application("web", "manifests/web"),
    "apps/argocd.yaml": application("argocd", "cd", namespace="argocd")
    + config_map("zz", "argocd"),
    "apps/old.yaml": application("old", "manifests/old"),
    "apps/kustomization.yaml": "resources: [web.yaml, late.yaml]\n",
    "cd/root.yaml": application("root", "apps", namespace="argocd"),
    "cd/kustomization.yaml": "resources: [root.yaml]\n",
    **{f"manifests/{name}/a.yaml": config_map(name) for name in ("late", "old", "web")},
}
NO_PARENT_CODES = {"ORD002", "ORD006", "ORD014", "ORD030"}


def test_an_assumed_parent_takes_no_unit_that_an_application_deploys(tmp_path: Path) -> None:
    second = application("second", "manifests/old", namespace="other")
    root = write_files(tmp_path, {**BESIDE, "start/a.yaml": second, "start/b.yaml": ""})

    assert not NO_PARENT_CODES & {*lint_codes(root)}
    assert unit_names(root).count("Application/argocd/web") == 1


def test_files_that_a_deployed_kustomization_does_not_name_are_not_deployed(
    tmp_path: Path,
) -> None:
    root = write_files(tmp_path, BESIDE)

    left_out = [
        finding for finding in lint_report(root).findings if finding.code == "units.left-out"
    ]

    assert "Application/argocd/old" not in unit_names(root)
    (finding,) = left_out
    assert finding.severity == "note"
    assert "`apps/old.yaml`" in finding.message
    assert str(finding.location).startswith("apps/kustomization.yaml")


def test_an_entry_that_is_commented_out_is_not_deployed(tmp_path: Path) -> None:
    files = {
        "flux/ks.yaml": GIT_REPOSITORY + kustomization("cluster-apps", "./apps"),
        "apps/kustomization.yaml": "resources:\n- ./web/ks.yaml\n# - ./old/ks.yaml\n",
        "apps/web/ks.yaml": kustomization("web", "./apps/web/app"),
        "apps/web/app/cm.yaml": config_map("web"),
        "apps/old/ks.yaml": kustomization("old", "./apps/old/app", more="dependsOn: [{name: x}]"),
        "apps/old/app/cm.yaml": config_map("old"),
    }
    root = write_files(tmp_path, files)

    assert unit_names(root) == [
        "Kustomization/flux-system/cluster-apps",
        "Kustomization/flux-system/web",
    ]
    assert "ORD001" not in lint_codes(root)


def test_an_application_whose_source_has_a_kustomization_in_its_directory_is_a_root(
    tmp_path: Path,
) -> None:
    root = write_files(tmp_path, BESIDE)

    assert unit_names(root) == [
        "Application/argocd/argocd",
        "Application/argocd/root",
        "Application/argocd/web",
        "Application/argocd/late",
    ]


def test_a_chart_with_the_application_that_deploys_it_manages_itself(tmp_path: Path) -> None:
    files = {
        "chart/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
        "chart/templates/app.yaml": application("shop-app", "chart", wave="100"),
        "chart/templates/pre.yaml": application("shop-prereqs", "prereqs")
        + config_map("c", "default"),
        "prereqs/cm.yaml": config_map("a"),
    }
    root = write_files(tmp_path, files)

    assert unit_names(root) == ["Application/argocd/shop-app", "Application/argocd/shop-prereqs"]
    assert not NO_PARENT_CODES & {*lint_codes(root)}


APPSET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all, namespace: argocd}
spec:
  goTemplate: true
  generators:
  - git:
      repoURL: https://github.com/x/y.git
      revision: main
      files: [{path: apps/*/application.yaml}]
  template:
    metadata: {name: '{{.metadata.name}}'}
    spec:
      project: default
      source:
        {repoURL: '{{.spec.source.repoURL}}', targetRevision: main, path: '{{.spec.source.path}}'}
      destination: {server: "https://kubernetes.default.svc", namespace: web}
      syncPolicy: {automated: {}}
"""


def test_an_input_of_a_git_generator_is_data(tmp_path: Path) -> None:
    files = {
        "sets/set.yaml": APPSET,
        "apps/web/application.yaml": application("web", "manifests/web").removeprefix("---\n"),
        "manifests/web/a.yaml": config_map("a"),
    }
    root = write_files(tmp_path, files)

    assert unit_names(root) == ["ApplicationSet/argocd/all", "Application/argocd/web"]
    assert lint_codes(root) == []


TEMPLATE = application("${NAME}", "manifests/web")
JINJA = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {{ cookiecutter.name }}
{% if cookiecutter.namespace %}
  namespace: argocd
{% endif %}
"""


def test_templates_are_no_units(tmp_path: Path) -> None:
    files = {
        "apps/web.yaml": application("web", "manifests/web"),
        "manifests/web/a.yaml": config_map("a"),
        "templates/app.yaml": TEMPLATE,
        "cookiecutter/app.yaml": JINJA,
    }
    root = write_files(tmp_path, files)

    codes = [finding.code for finding in lint_report(root).findings]

    assert unit_names(root) == ["Application/argocd/web"]
    assert lint_codes(root) == []
    assert codes.count("units.template") == 1


def test_an_invalid_file_next_to_a_template_is_an_error(tmp_path: Path) -> None:
    broken = APPSET.replace("  template:\n", "  template: [\n")
    root = write_files(
        tmp_path,
        {"sets/set.yaml": broken, "apps/web.yaml": application("web", "x"), "x/a.yaml": ""},
    )

    assert "documents.syntax" in lint_codes(root)


OVERLAY = """\
resources: [../base]
patches:
- target: {kind: ApplicationSet}
  patch: |
    - op: add
      path: /spec/template/spec/project
      value: default
"""


def test_an_object_is_checked_after_the_patches_of_its_overlay(tmp_path: Path) -> None:
    base = APPSET.replace("      project: default\n", "")
    files = {
        "base/kustomization.yaml": "resources: [set.yaml]\n",
        "base/set.yaml": base,
        "prod/kustomization.yaml": OVERLAY,
        "apps/web/application.yaml": application("web", "manifests/web").removeprefix("---\n"),
        "manifests/web/a.yaml": config_map("a"),
    }
    root = write_files(tmp_path, files)

    assert unit_names(root) == ["prod", "ApplicationSet/argocd/all", "Application/argocd/web"]
    assert lint_codes(root) == []


def test_a_kustomization_that_another_one_names_is_no_root(tmp_path: Path) -> None:
    files = {
        "kustomization.yaml": "resources: [clusters/home]\n",
        "clusters/home/kustomization.yaml": "resources: [../../apps]\n",
        "apps/kustomization.yaml": "resources: [ks.yaml]\n",
        "apps/ks.yaml": kustomization("web", "./web") + GIT_REPOSITORY,
        "web/cm.yaml": config_map("web"),
        "other/readme.yaml": "",
    }
    root = write_files(tmp_path, files)

    assert unit_names(root).count("Kustomization/flux-system/web") == 1


RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: web}
spec: {interval: 1h, chartRef: {kind: OCIRepository, name: web}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: web, namespace: web}
spec: {interval: 1h, url: oci://registry.example.com/charts/web, ref: {tag: 1.0.0}}
"""


def test_a_release_in_a_base_belongs_to_the_overlays_of_the_base(tmp_path: Path) -> None:
    overlay = "resources: [../base]\n"
    files = {
        "web/base/kustomization.yaml": "resources: [web.yaml]\n",
        "web/base/web.yaml": RELEASE,
        "web/production/kustomization.yaml": overlay,
        "web/staging/kustomization.yaml": overlay,
    }
    root = write_files(tmp_path, files)

    assert unit_names(root) == [
        "web-production",
        "HelmRelease/web/web",
        "web-staging",
        "HelmRelease/web/web",
    ]


def test_an_overlay_that_a_unit_of_another_overlay_deploys_is_no_root(tmp_path: Path) -> None:
    files = {
        "flux/kustomization.yaml": "resources: [apps.yaml]\n",
        "flux/apps.yaml": kustomization("apps", "./apps") + GIT_REPOSITORY,
        "apps/kustomization.yaml": "resources: [ks.yaml]\n",
        "apps/ks.yaml": kustomization("web", "./web"),
        "web/cm.yaml": config_map("web"),
    }
    root = write_files(tmp_path, files)

    assert unit_names(root) == [
        "flux",
        "Kustomization/flux-system/apps",
        "Kustomization/flux-system/web",
    ]
