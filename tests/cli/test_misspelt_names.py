"""Misspelt names of objects, and what is missing in an empty cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.manifest_texts import application, config_map, pods
from tests.support.recorded_wording import RecordedWording
from tests.support.rule_pages import write_files


def run(folder: Path, *args: str) -> CommandOutput:
    return run_in_process(folder, os.environ, args)


def lint_of_shop(folder: Path, *texts: str) -> dict[str, str]:
    shop = {f"shop/{at}.yaml": text for at, text in enumerate(texts)}
    write_files(folder, {"app.yaml": application(), **shop})
    ran = run(folder, "lint", "--offline", "-o", "json", ".")
    return {
        finding["fix"]: finding["severity"]
        for finding in json.loads(ran.stdout)["findings"]
        if finding["code"] == "ORD061"
    }


def test_a_misspelt_name_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    web = pods("Deployment", "web", maps=("web-settingz",))

    result = lint_of_shop(tmp_path, web, config_map("web-settings"))

    ((fix, severity),) = result.items()
    assert "`web-settings`" in fix
    assert severity == "warning"


@pytest.mark.parametrize(
    ("desired", "existing"),
    [("web-2", "web-1"), ("payments", "web-settings"), ("web-settings", "web-settings")],
    ids=["another number", "made by hand", "there"],
)
def test_a_different_name_is_not_reported_as_a_misspelt_one(
    desired: str, existing: str, tmp_path: Path
) -> None:
    web = pods("Deployment", "web", maps=(desired,))

    fixes = lint_of_shop(tmp_path, web, config_map(existing))

    assert not any(f"`{existing}`" in fix for fix in fixes)


def test_two_names_that_one_object_needs_are_not_one(tmp_path: Path) -> None:
    web = pods("Deployment", "web", secrets=("db-user", "db-users"))

    fixes = lint_of_shop(tmp_path, web, config_map("db-users", kind="Secret"))

    assert not any("`db-users`" in fix for fix in fixes)


def test_a_secret_in_another_namespace_is_a_note(wording: RecordedWording, tmp_path: Path) -> None:
    web = pods("Deployment", "web", secrets=("token",))
    user_home = "apiVersion: v1\nkind: Namespace\nmetadata: {name: vault}\n"
    secret = config_map("token", kind="Secret", inside="vault")

    ((fix, severity),) = lint_of_shop(tmp_path, web, secret, user_home).items()
    wording(fix)
    assert severity == "note"


FAR_CHART = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: "https://charts.example.com", chart: {chart}, targetRevision: 1.0.0}}
  destination: {{server: https://kubernetes.default.svc, namespace: {namespace}}}
  syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}
"""
MONITOR = """apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: http}]}
"""


def lacks(folder: Path) -> list[str]:
    ran = run(folder, "lint", "--offline", "--empty-cluster", "-o", "json", ".")
    return [item["what"] for item in json.loads(ran.stdout)["emptyCluster"]["assumed"]]


def test_an_object_that_an_unavailable_chart_may_contain_is_not_missing(tmp_path: Path) -> None:
    chart = FAR_CHART.format(name="metrics", chart="kube-prometheus-stack", namespace="shop")
    web = pods("Deployment", "web", secrets=("grafana",))
    shop = {"shop/monitor.yaml": MONITOR, "shop/web.yaml": web}
    write_files(tmp_path, {"apps/app.yaml": application(), "apps/far.yaml": chart, **shop})

    assert lacks(tmp_path) == []


def test_an_object_without_a_matching_chart_is_missing(tmp_path: Path) -> None:
    chart = FAR_CHART.format(name="metrics", chart="datadog", namespace="datadog")
    web = pods("Deployment", "web", secrets=("grafana",))
    shop = {"shop/monitor.yaml": MONITOR, "shop/web.yaml": web}
    write_files(tmp_path, {"apps/app.yaml": application(), "apps/far.yaml": chart, **shop})

    assert lacks(tmp_path) == [
        "operator prometheus-operator (ServiceMonitor)",
        "Secret shop/grafana",
    ]


def test_a_namespace_that_is_nearly_an_existing_one_is_reported(tmp_path: Path) -> None:
    app = application().replace(", syncOptions: [CreateNamespace=true]", "")
    user_home = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shops}\n"
    files = {"shop/home.yaml": user_home, "shop/a.yaml": config_map("a")}
    write_files(tmp_path, {"app.yaml": app, **files})

    ran = run(tmp_path, "lint", "--offline", ".")

    assert any(
        "warning[ORD061]" in line and "ConfigMap `shop/a`" in line and "Namespace `shop`" in line
        for line in ran.stdout.splitlines()
    )
    assert "`shops`" in ran.stdout
