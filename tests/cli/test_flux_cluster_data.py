"""Repositories of several clusters: each unit reads ConfigMaps and Secrets of its own cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.file_trees import (
    GIT_REPOSITORY,
    kustomization,
    lint_report,
    write_files,
)
from tests.support.tidegate_runs import tidegate

CLUSTERS = ("cloud", "home")
VARIABLES = '"postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-settings"}]}'
AFTER_META = f'{VARIABLES}, "dependsOn": [{{"name": "meta"}}]'
WEB = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: default}
data: {domain: "${DOMAIN}"}
"""
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 1h
  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system}}}
  valuesFrom: [{kind: ConfigMap, name: cluster-settings}]
"""
CHART = {
    "chart/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}\n",
    "chart/templates/web.yaml": WEB.replace("${DOMAIN}", "{{ .Values.domain }}"),
}


def settings(data: str) -> str:
    return f"""\
apiVersion: v1
kind: ConfigMap
metadata: {{name: cluster-settings, namespace: flux-system}}
data: {data}
"""


def generator(entry: str) -> str:
    """Return a kustomization that generates the settings, so that no file has them."""
    return f"""\
namespace: flux-system
configMapGenerator: [{{name: cluster-settings, literals: ["{entry}"]}}]
generatorOptions: {{disableNameSuffixHash: true}}
"""


def clusters(more: str = AFTER_META) -> dict[str, str]:
    """Return the files of two clusters: each deploys its part of `meta`, and both deploy `apps`."""
    files = {"apps/web.yaml": WEB}
    for name in CLUSTERS:
        root = kustomization("flux-system", f"./clusters/{name}")
        files |= {
            f"clusters/{name}/sync.yaml": GIT_REPOSITORY + root,
            f"clusters/{name}/meta.yaml": kustomization("meta", f"./meta/{name}"),
            f"clusters/{name}/apps.yaml": kustomization("apps", "./apps", more=more),
            f"meta/{name}/marker.yaml": settings("{}").replace("cluster-settings", "marker"),
        }
    return files


def serious_codes(root: Path) -> list[str]:
    return [item.code for item in lint_report(root).findings if item.severity != "note"]


def domain(root: Path, cluster: str) -> str:
    """Return the domain of the app in a cluster."""
    words = ("--offline", "--root", f"clusters/{cluster}", "--unit", "apps", "-o", "json")
    objects = map(json.loads, tidegate("render", root, *words).stdout.splitlines())
    return next(str(item["data"]["domain"]) for item in objects if item["kind"] == "ConfigMap")


@pytest.mark.parametrize(
    "home_files",
    [
        {"meta/home/kustomization.yaml": generator("DOMAIN=home.example.com")},
        {"meta/home/settings.yaml": settings("{DOMAIN: home.example.com}")},
        {"clusters/home/settings.yaml": settings("{DOMAIN: home.example.com}")},
    ],
    ids=["generated", "deployed", "by-the-root"],
)
@pytest.mark.parametrize("cloud_file", ["meta/cloud/settings.yaml", "apps/settings-of-cloud.yaml"])
def test_each_cluster_uses_its_own_settings(
    tmp_path: Path, home_files: dict[str, str], cloud_file: str
) -> None:
    cloud = {cloud_file: settings("{DOMAIN: cloud.example.com}")}
    if not cloud_file.startswith("meta/"):
        overlay = f"resources: [../../{cloud_file}]\n"
        cloud |= {
            "meta/cloud/kustomization.yaml": overlay,
            "apps/kustomization.yaml": "resources: [web.yaml]\n",
        }
    root = write_files(tmp_path, {**clusters(), **home_files, **cloud})

    assert [domain(root, name) for name in CLUSTERS] == ["cloud.example.com", "home.example.com"]
    assert serious_codes(root) == []


def test_variables_of_another_cluster_are_not_missing_here(tmp_path: Path) -> None:
    files = {
        "meta/home/kustomization.yaml": generator("DOMAIN=home.example.com"),
        "meta/cloud/settings.yaml": settings("{REGION: eu}"),
        "clusters/cloud/apps.yaml": kustomization("apps", "./meta/cloud"),
    }
    root = write_files(tmp_path, {**clusters(), **files})

    assert "render.substitute.missing" not in serious_codes(root)


@pytest.mark.parametrize("path", [".", "clusters/home"])
@pytest.mark.parametrize(
    "file",
    ["meta/cloud/settings.yaml", "clusters/cloud/settings.yaml", "meta/cloud/bootstrap/cm.yaml"],
)
def test_settings_that_only_another_cluster_has_are_unknown(
    tmp_path: Path, file: str, path: str
) -> None:
    files = {
        file: settings("{DOMAIN: cloud.example.com}"),
        "meta/cloud/kustomization.yaml": "resources: [marker.yaml]\n",
    }
    if file.count("/") == 2 and file.startswith("meta"):
        files["meta/cloud/kustomization.yaml"] = "resources: [marker.yaml, settings.yaml]\n"
    root = write_files(tmp_path, {**clusters(), **files})

    report = lint_report(root / path, "--root", "clusters/home")

    assert ("ORD061", "note") in [(item.code, item.severity) for item in report.findings]
    assert len(report.unknown) == 1
    assert domain(root, "home") == "domain"


def test_settings_that_no_unit_deploys_are_used_by_all_clusters(tmp_path: Path) -> None:
    files = {"bootstrap/settings.yaml": settings("{DOMAIN: example.com}")}
    root = write_files(tmp_path, {**clusters(VARIABLES), **files})

    assert [domain(root, name) for name in CLUSTERS] == ["example.com", "example.com"]


def test_values_of_a_release_are_those_of_its_cluster(tmp_path: Path) -> None:
    files = {
        **clusters('"dependsOn": [{"name": "meta"}]'),
        **CHART,
        "apps/web.yaml": RELEASE,
        "meta/home/kustomization.yaml": generator("values.yaml=domain: home.example.com"),
        "meta/cloud/settings.yaml": settings('{values.yaml: "domain: cloud.example.com"}'),
    }
    root = write_files(tmp_path, files)

    assert [domain(root, name) for name in CLUSTERS] == ["cloud.example.com", "home.example.com"]
