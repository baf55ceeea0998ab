"""Charts, overlays and directories that nothing deploys together: each is checked for itself."""

from __future__ import annotations

from pathlib import Path

from tests.support.file_trees import (
    URL,
    application,
    config_map,
    lint_codes,
    lint_report,
    write_files,
)
from tests.support.tidegate_runs import tidegate

CHART_FILE = "apiVersion: v2\nname: apps\nversion: 1.0.0\n"
APPS = f"""\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: web, namespace: argocd}}
spec:
  project: default
  source:
    repoURL: "{URL}"
    targetRevision: main
    path: web
    helm: {{valueFiles: ["values-{{{{ .Values.environment }}}}.yaml"]}}
  destination: {{server: "https://kubernetes.default.svc", namespace: web}}
  syncPolicy: {{automated: {{}}}}
"""
WEB = {
    "web/Chart.yaml": CHART_FILE.replace("apps", "web"),
    "web/values.yaml": "name: web\n",
    "web/values-dev.yaml": "name: web-dev\n",
    "web/values-prod.yaml": "name: web-prod\n",
    "web/templates/a.yaml": config_map("{{ .Values.name }}"),
}
CATALOG = {
    "db/base/kustomization.yaml": "resources: [a.yaml]\n",
    "db/base/a.yaml": config_map("a"),
    "db/overlays/prod/kustomization.yaml": "resources: [../../base]\n",
    "db/parts/kustomization.yaml": "kind: Component\npatches: [{path: gone.yaml}]\n",
    "cart/kustomization.yaml": "resources: [../lib/b.yaml]\n",
    "lib/b.yaml": config_map("b"),
    "plain/c.yaml": config_map("c"),
    **WEB,
}


def test_each_of_several_directories_is_checked(tmp_path: Path) -> None:
    files = {**CATALOG, "cart/kustomization.yaml": "resources: [d.yaml]\n"}
    root = write_files(tmp_path, {**files, "cart/d.yaml": config_map("d")})

    report = lint_report(root)
    broken = write_files(tmp_path / "broken", {**files, "cart/d.yaml": "kind: ConfigMap\n"})

    assert report.objects == 5, "base through its overlay, cart, lib, plain, and the chart"
    assert [finding for finding in report.findings if finding.severity != "note"] == []
    assert lint_codes(broken) != []


def test_a_rollout_of_several_directories_needs_a_choice(tmp_path: Path) -> None:
    root = write_files(tmp_path, CATALOG)

    ran = tidegate("plan", root, "--offline")

    assert ran.returncode == 3
    assert "error[render.ambiguous]" in ran.stderr


def test_objects_of_separate_directories_are_no_duplicates(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            **{f"{name}/kustomization.yaml": "resources: [a.yaml]\n" for name in ("a", "b")},
            **{f"{name}/a.yaml": config_map("same") for name in ("a", "b")},
        },
    )

    report = lint_report(root)

    assert (report.objects, lint_codes(root)) == (2, [])


def test_a_chart_of_applications_is_checked_with_the_values_of_each_environment(
    tmp_path: Path,
) -> None:
    files = {
        "apps/Chart.yaml": CHART_FILE,
        "apps/values.yaml": "environment: ''\n",
        "apps/values-common.yaml": "environment: ''\n",
        "apps/values-dev.yaml": "environment: dev\n",
        "apps/values-prod.yaml": "environment: prod\n",
        "apps/templates/web.yaml": APPS,
        **WEB,
    }
    root = write_files(tmp_path, files)

    report = lint_report(root)
    chosen = tidegate("plan", root, "--offline", "--root", "apps/values-prod.yaml")

    (note,) = [finding for finding in report.findings if finding.code == "units.values"]
    assert lint_codes(root) == []
    assert report.objects == 4, "an Application and a ConfigMap for each of two environments"
    assert all(name in note.message for name in ("values-dev", "values-prod"))
    assert "values-common" not in note.message
    assert "web-prod" in chosen.stdout
    assert "web-dev" not in chosen.stdout


def test_a_chart_that_another_one_deploys_is_not_checked_with_its_defaults(tmp_path: Path) -> None:
    child = APPS.replace("values-{{ .Values.environment }}.yaml", "values-prod.yaml")
    parent = child.replace("name: web", "name: apps").replace("path: web", "path: apps")
    files = {
        "root/Chart.yaml": CHART_FILE.replace("apps", "root"),
        "root/templates/apps.yaml": parent,
        "apps/Chart.yaml": CHART_FILE,
        "apps/values-prod.yaml": "web: true\n",
        "apps/templates/web.yaml": "{{ required `web` .Values.web | quote | print | trunc 0 }}"
        + child,
        **WEB,
    }
    root = write_files(tmp_path, files)

    assert lint_codes(root) == []


def test_a_chart_whose_values_are_not_known_is_no_error(tmp_path: Path) -> None:
    files = {
        "apps/Chart.yaml": CHART_FILE,
        "apps/templates/web.yaml": APPS,
        **WEB,
    }
    root = write_files(tmp_path, files)

    codes = {finding.code: finding.severity for finding in lint_report(root).findings}

    assert codes["render.helm.file"] == "note"
    assert lint_codes(root) == []


def test_a_placeholder_in_capital_letters_is_a_template(tmp_path: Path) -> None:
    names = ("<CLUSTER_NAME>", "__CLUSTER__", "@CLUSTER@", "%CLUSTER%", "$(CLUSTER)", "[[ name ]]")
    files = {
        "apps/web.yaml": application("web", "manifests/web"),
        "manifests/web/a.yaml": config_map("a"),
        **{
            f"templates/{index}.yaml": application(f"'{name}'", "manifests/web")
            for index, name in enumerate(names)
        },
    }
    root = write_files(tmp_path, files)

    report = lint_report(root)

    (note,) = [finding for finding in report.findings if finding.code == "units.template"]
    assert lint_codes(root) == []
    assert f"{len(names) - 1} more" in note.message
