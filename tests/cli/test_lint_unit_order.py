"""`tidegate lint` reports units that need each other's objects without an order (ORD063)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.in_process_command import run_in_process
from tests.support.manifest_texts import (
    SOURCE,
    URL,
    WAVE,
    application,
    config_map,
    kustomization,
    pods,
)
from tests.support.rule_pages import write_files

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one, namespace: default}\n"
ISSUER = """apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: own}
spec: {selfSigned: {}}
"""
GATEWAY = """apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: default}
spec: {gatewayClassName: own, listeners: [{name: http, port: 80, protocol: HTTP}]}
"""
ROUTE = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec: {parentRefs: [{name: public}]}
"""
SECRET = config_map("db", kind="Secret", inside="default")
READER = pods("Deployment", "web", secrets=("db",), inside="default")


class Reported(NamedTuple):
    severity: str
    message: str
    file: str
    paste: str
    story: list[str]


def lint(folder: Path, files: dict[str, str]) -> list[Reported]:
    ran = run_in_process(
        write_files(folder, files), os.environ, ("lint", "--offline", "-o", "json", ".")
    )
    return [
        Reported(*(finding[field] for field in Reported._fields))
        for finding in json.loads(ran.stdout)["findings"]
        if finding["code"] == "ORD063"
    ]


def flux(*units: str) -> dict[str, str]:
    return {"clusters/source.yaml": SOURCE, "clusters/units.yaml": "---\n".join(units)}


def child(name: str, wave: int | None = None, *, retry: str = "", path: str = "") -> str:
    """An Application that does not create its namespace."""
    note = f', annotations: {{{WAVE}: "{wave}"}}' if wave is not None else ""
    text = application(name, path or name)
    text = text.replace("namespace: argocd}", f"namespace: argocd{note}}}")
    return text.replace("{automated: {}, syncOptions: [CreateNamespace=true]}", policy(retry))


def policy(retry: str) -> str:
    return f"{{automated: {{}}{retry}}}"


def argo(*children: str) -> dict[str, str]:
    root = child("root", path="apps")
    return {"root.yaml": root, **{f"apps/{at}.yaml": text for at, text in enumerate(children)}}


@pytest.mark.parametrize(
    ("provided", "needed"),
    [
        (NAMESPACE, config_map("settings")),
        (CRD, WIDGET),
        (config_map("vars", inside="flux-system"), ""),
    ],
    ids=["namespace", "definition", "variables"],
)
def test_a_unit_that_flux_refuses_until_another_one_is_there_is_a_warning(
    provided: str, needed: str, tmp_path: Path
) -> None:
    apps = kustomization("apps")
    if not needed:
        source = "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"
        apps = apps.replace("  prune: true", f"  prune: true\n  {source}")
    files = {
        **flux(kustomization("infra"), apps),
        "infra/all.yaml": provided,
        "apps/all.yaml": needed or config_map("settings", inside="default"),
    }

    (finding,) = lint(tmp_path, files)

    assert finding.severity == "warning"
    assert finding.paste == "spec:\n  dependsOn:\n  - name: infra"
    assert finding.file == "clusters/units.yaml"
    assert "10m" in finding.story[-1]


def test_a_route_for_which_no_gate_waits_needs_no_order_after_its_gateway(tmp_path: Path) -> None:
    files = {
        **flux(kustomization("infra", wait=True), kustomization("apps"), kustomization("late")),
        "infra/all.yaml": GATEWAY,
        "apps/all.yaml": ROUTE,
        "late/all.yaml": READER,
        "clusters/order.yaml": kustomization("last", "infra"),
        "last/all.yaml": SECRET,
    }

    reported = [finding.message for finding in lint(tmp_path, files)]

    assert not any("Gateway" in message for message in reported)
    assert any("Secret" in message for message in reported)


def test_several_needs_of_one_pair_are_one_finding(tmp_path: Path) -> None:
    files = {
        **flux(kustomization("infra"), kustomization("apps")),
        "infra/all.yaml": f"{NAMESPACE}---\n{CRD}---\n{SECRET}",
        "apps/all.yaml": "---\n".join((config_map("settings"), WIDGET, READER)),
    }

    assert len(lint(tmp_path, files)) == 1


def test_the_printed_lines_remove_the_finding(tmp_path: Path) -> None:
    files = {
        **flux(kustomization("infra"), kustomization("apps", "infra")),
        "infra/all.yaml": CRD,
        "apps/all.yaml": WIDGET,
    }

    assert lint(tmp_path, files) == []


@pytest.mark.parametrize(
    ("others", "severity"),
    [((), "note"), ((kustomization("more", "infra"),), "warning")],
    ids=["no order at all", "another unit waits"],
)
def test_a_missing_order_that_recovers_is_a_note_unless_other_units_are_ordered(
    others: tuple[str, ...], severity: str, tmp_path: Path
) -> None:
    files = {
        **flux(kustomization("infra"), kustomization("apps"), *others),
        "infra/all.yaml": SECRET,
        "apps/all.yaml": READER,
        "more/all.yaml": config_map("more", inside="default"),
    }

    (finding,) = lint(tmp_path, files)

    assert finding.severity == severity


def test_a_short_retry_interval_is_a_note_in_a_repository_without_order(tmp_path: Path) -> None:
    apps = kustomization("apps").replace("interval: 10m", "interval: 10m\n  retryInterval: 1m")
    files = {
        **flux(kustomization("infra"), apps),
        "infra/all.yaml": NAMESPACE,
        "apps/all.yaml": config_map("settings"),
    }

    (finding,) = lint(tmp_path, files)

    assert finding.severity == "note"


@pytest.mark.parametrize(
    ("infra", "web", "severity"),
    [
        (child("infra"), child("web"), "warning"),
        (child("infra", 3), child("web", 1), "warning"),
        (child("infra"), child("web", retry=", retry: {limit: 0}"), "error"),
    ],
    ids=["one wave", "moved after its users", "never retried"],
)
def test_applications_that_are_not_ordered_by_waves(
    infra: str, web: str, severity: str, tmp_path: Path
) -> None:
    files = {
        **argo(infra, web),
        "infra/all.yaml": NAMESPACE,
        "web/all.yaml": config_map("settings"),
    }

    (finding,) = lint(tmp_path, files)

    assert finding.severity == severity
    assert f"{WAVE}: " in finding.paste


def test_applications_in_the_right_waves_have_no_finding(tmp_path: Path) -> None:
    files = {
        **argo(child("infra", 0), child("web", 1)),
        "infra/all.yaml": NAMESPACE,
        "web/all.yaml": config_map("settings"),
    }

    assert lint(tmp_path, files) == []


CHART = "{repoURL: https://charts.jetstack.io, chart: cert-manager, targetRevision: 1.14.0}"
OPERATOR = "quay.io/jetstack/cert-manager-controller:v1.14.0"
SETTINGS = """apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
data: {kustomize.buildOptions: --enable-helm}
"""
INFLATED = """helmCharts:
- {name: cert-manager, repo: https://charts.jetstack.io, version: 1.14.0, releaseName: certs}
"""
REMOTE = """resources:
- https://github.com/cert-manager/cert-manager/releases/download/v1.14.0/cert-manager.yaml
"""
SOURCE_OF_CERTS = f"{{repoURL: {URL}, path: certs, targetRevision: v1.0.0}}"


@pytest.mark.parametrize(
    ("source", "files"),
    [
        (CHART, {}),
        (SOURCE_OF_CERTS, {"certs/kustomization.yaml": INFLATED, "settings.yaml": SETTINGS}),
        (SOURCE_OF_CERTS, {"certs/kustomization.yaml": REMOTE}),
        (
            SOURCE_OF_CERTS,
            {
                "certs/operator.yaml": pods("Deployment", "certs", inside="default").replace(
                    "shop/certs:1", OPERATOR
                )
            },
        ),
    ],
    ids=["chart", "helmCharts", "remote manifest", "operator"],
)
def test_an_operator_is_recognized_by_its_name_for_any_source(
    source: str, files: dict[str, str], tmp_path: Path
) -> None:
    certs = child("certs").replace(SOURCE_OF_CERTS, source)

    (finding,) = lint(tmp_path, {**argo(certs, child("web")), **files, "web/all.yaml": ISSUER})

    assert "`Application/argocd/certs`" in finding.message
    assert finding.severity == "warning"


def test_a_pod_that_calls_a_stateless_service_is_no_need(tmp_path: Path) -> None:
    front = pods("Deployment", "front", calls=("back",), inside="default")
    back = pods("Deployment", "back", inside="default")
    service = """apiVersion: v1
kind: Service
metadata: {name: back, namespace: default}
spec: {selector: {app: back}, ports: [{port: 80}]}
"""
    files = {
        **flux(kustomization("infra"), kustomization("apps"), kustomization("more", "infra")),
        "infra/all.yaml": f"{back}---\n{service}",
        "apps/all.yaml": front,
        "more/all.yaml": config_map("more", inside="default"),
    }

    assert lint(tmp_path, files) == []


def test_units_that_need_each_other_have_no_order_to_declare(tmp_path: Path) -> None:
    files = {
        **flux(kustomization("one"), kustomization("two"), kustomization("more", "one")),
        "one/all.yaml": "---\n".join(
            (SECRET, pods("Deployment", "one", secrets=("other",), inside="default"))
        ),
        "two/all.yaml": "---\n".join(
            (config_map("other", kind="Secret", inside="default"), READER)
        ),
        "more/all.yaml": config_map("more", inside="default"),
    }

    assert lint(tmp_path, files) == []
