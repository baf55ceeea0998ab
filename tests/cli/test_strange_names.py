"""Names that lead past what is there, and what an empty cluster really lacks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.inside import Said, typed
from tests.support.repo_texts import application, config_map, pods
from tests.support.rule_pages import write_files


def run(folder: Path, *words: str) -> Said:
    return typed(folder, os.environ, words)


def lint_of_shop(folder: Path, *texts: str) -> dict[str, str]:
    shop = {f"shop/{at}.yaml": text for at, text in enumerate(texts)}
    write_files(folder, {"app.yaml": application(), **shop})
    ran = run(folder, "lint", "--offline", "-o", "json", ".")
    return {
        finding["fix"]: finding["severity"]
        for finding in json.loads(ran.stdout)["findings"]
        if finding["code"] == "ORD061"
    }


def test_a_name_that_is_nearly_right_is_told_with_what_may_be_meant(tmp_path: Path) -> None:
    web = pods("Deployment", "web", maps=("web-settingz",))

    result = lint_of_shop(tmp_path, web, config_map("web-settings"))

    assert result == {"did you mean `web-settings`?": "warning"}


@pytest.mark.parametrize(
    ("wanted", "there"),
    [("web-2", "web-1"), ("payments", "web-settings"), ("web-settings", "web-settings")],
    ids=["another number", "made by hand", "there"],
)
def test_a_name_of_its_own_is_not_taken_for_another(
    wanted: str, there: str, tmp_path: Path
) -> None:
    web = pods("Deployment", "web", maps=(wanted,))

    assert lint_of_shop(tmp_path, web, config_map(there)) == {}


def test_two_names_that_one_object_needs_are_not_one(tmp_path: Path) -> None:
    web = pods("Deployment", "web", secrets=("db-user", "db-users"))

    assert lint_of_shop(tmp_path, web, config_map("db-users", kind="Secret")) == {}


def test_a_secret_that_goes_to_another_namespace_is_worth_a_note(tmp_path: Path) -> None:
    web = pods("Deployment", "web", secrets=("token",))
    home = "apiVersion: v1\nkind: Namespace\nmetadata: {name: vault}\n"
    secret = config_map("token", kind="Secret", inside="vault")

    assert lint_of_shop(tmp_path, web, secret, home) == {"it is brought to `vault`": "note"}


FAR_CHART = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: "https://charts.example.com", chart: {chart}, targetRevision: 1.0.0}}
  destination: {{server: https://kubernetes.default.svc, namespace: {home}}}
  syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}
"""
MONITOR = """apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: http}]}
"""


def lacks(folder: Path) -> list[str]:
    ran = run(folder, "lint", "--offline", "--empty-cluster", "-o", "json", ".")
    return [item["what"] for item in json.loads(ran.stdout)["empty_cluster"]["assumed"]]


def test_what_a_chart_that_cannot_be_had_may_bring_is_not_lacking(tmp_path: Path) -> None:
    chart = FAR_CHART.format(name="metrics", chart="kube-prometheus-stack", home="shop")
    web = pods("Deployment", "web", secrets=("grafana",))
    shop = {"shop/monitor.yaml": MONITOR, "shop/web.yaml": web}
    write_files(tmp_path, {"apps/app.yaml": application(), "apps/far.yaml": chart, **shop})

    assert lacks(tmp_path) == []


def test_what_no_chart_goes_by_the_name_of_is_lacking(tmp_path: Path) -> None:
    chart = FAR_CHART.format(name="metrics", chart="datadog", home="datadog")
    web = pods("Deployment", "web", secrets=("grafana",))
    shop = {"shop/monitor.yaml": MONITOR, "shop/web.yaml": web}
    write_files(tmp_path, {"apps/app.yaml": application(), "apps/far.yaml": chart, **shop})

    assert lacks(tmp_path) == [
        "operator prometheus-operator (ServiceMonitor)",
        "Secret shop/grafana",
    ]


def test_a_namespace_that_is_nearly_the_one_that_is_brought_is_told(tmp_path: Path) -> None:
    app = application().replace(", syncOptions: [CreateNamespace=true]", "")
    home = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shops}\n"
    files = {"shop/home.yaml": home, "shop/a.yaml": config_map("a")}
    write_files(tmp_path, {"app.yaml": app, **files})

    ran = run(tmp_path, "lint", "--offline", ".")

    assert "ConfigMap `shop/a` asks for Namespace `shop`, which nobody here brings" in ran.stdout
    assert "did you mean `shops`?" in ran.stdout
