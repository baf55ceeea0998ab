"""ApplicationSets with parameters without values, unknown clusters and unused steps."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.manifest_texts import URL, config_map, notes, pods
from tests.support.recorded_wording import RecordedWording
from tests.support.rule_pages import write_files


def run(folder: Path, *args: str) -> CommandOutput:
    return run_in_process(folder, os.environ, args)


CLUSTER = """apiVersion: v1
kind: Secret
metadata:
  name: {name}
  namespace: argocd
  labels: {{argocd.argoproj.io/secret-type: cluster}}
stringData: {{name: {name}, server: "https://{name}.example.com"}}
"""
SET = f"""apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: shops, namespace: argocd}}
spec:
  generators:
  - git:
      repoURL: {URL}
      revision: HEAD
      files: [{{path: "shops/*/config.yaml"}}]
  template:
    metadata: {{name: "shop-{{{{path.basename}}}}"}}
    spec:
      project: default
      source:
        repoURL: {URL}
        targetRevision: HEAD
        path: "{{{{path}}}}"
        directory: {{exclude: config.yaml}}
      destination:
        name: "{{{{cluster}}}}"
        namespace: shop
      syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}
"""


def shops(folder: Path, **configs: str) -> None:
    """A set that makes an Application of each file, for a cluster that the file names."""
    clusters = "---\n".join(CLUSTER.format(name=name) for name in ("east", "west"))
    files = {"set.yaml": SET, "clusters.yaml": clusters}
    for name, config in configs.items():
        files[f"shops/{name}/config.yaml"] = config
        later = config_map("settings", notes(wave=1 if name == "west" else -1))
        web = pods("Deployment", "web", maps=("settings",))
        files[f"shops/{name}/shop.yaml"] = f"{web}---\n{later}"
    write_files(folder, files)


def test_a_parameter_without_a_value_is_reported(tmp_path: Path) -> None:
    shops(tmp_path, east="cluster: east\n", north="clusters: east\n")

    ran = run(tmp_path, "units", "--offline", ".")

    assert any(
        "warning[appset.parameter]" in line and "`{{cluster}}`" in line
        for line in ran.stderr.splitlines()
    )
    assert "  at set.yaml:20:9 (spec.template.spec.destination.name)" in ran.stderr
    assert "`clusters`" in ran.stderr


def test_a_cluster_that_is_not_in_git_is_reported_if_others_are(tmp_path: Path) -> None:
    shops(tmp_path, east="cluster: east\n", north="cluster: wset\n")

    ran = run(tmp_path, "units", "--offline", ".")

    assert any(
        "warning[argo.cluster]" in line
        and "`Application/argocd/shop-north`" in line
        and "`wset`" in line
        for line in ran.stderr.splitlines()
    )
    assert "  at set.yaml:20:9 (spec.template.spec.destination.name)" in ran.stderr
    assert "`west`" in ran.stderr


def test_clusters_that_git_knows_and_parameters_that_are_found_are_fine(tmp_path: Path) -> None:
    shops(tmp_path, east="cluster: east\n", north="cluster: in-cluster\n")

    ran = run(tmp_path, "units", "--offline", ".")

    assert "argo.cluster" not in ran.stderr
    assert "appset.parameter" not in ran.stderr


def test_a_failure_is_diagnosed_in_the_cluster_of_its_unit(
    wording: RecordedWording, tmp_path: Path
) -> None:
    shops(tmp_path, east="cluster: east\n", west="cluster: west\n")

    ran = run(tmp_path, "simulate", "--offline", ".")

    assert ran.code == 4
    wording(line for line in ran.stdout.splitlines() if "ConfigMap shop/settings" in line)


def test_applications_in_no_step_are_reported_once(
    wording: RecordedWording, tmp_path: Path
) -> None:
    shops(tmp_path, east="cluster: east\n", north="cluster: west\n")
    steps = "  strategy: {type: RollingSync, rollingSync: {steps: [{matchExpressions: "
    steps += "[{key: a, operator: In, values: [b]}]}]}}\n"
    (tmp_path / "set.yaml").write_text(SET + steps)

    ran = run(tmp_path, "lint", "--offline", ".")

    wording(
        line for line in ran.stdout.splitlines() if line.startswith(("error[", "warning[", "note["))
    )
