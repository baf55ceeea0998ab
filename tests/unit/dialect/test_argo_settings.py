"""Settings of an installation of Argo CD, and ApplicationSets, which are not planned yet."""

from __future__ import annotations

import pytest

from tidegate.dialect.argo.settings import read_chart_values, read_settings
from tidegate.documents import read_documents
from tidegate.errors import Location
from tidegate.model.k8s.objects import JsonObject

MAPS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
data:
  application.resourceTrackingMethod: label
  resource.customizations.health.argoproj.io_Application: "hs = {}"
  kustomize.buildOptions.v5: --enable-helm
  dex.config: secret
  helm.enable: null
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cmd-params-cm}
data: {applicationsetcontroller.enable.progressive.syncs: "true"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: another}
data: {helm.enable: "false"}
---
apiVersion: example.com/v1
kind: ConfigMap
metadata: {name: argocd-cm}
data: {helm.enable: "false"}
"""


def test_settings_are_found_in_the_config_maps_with_their_place() -> None:
    settings = read_settings(read_documents(MAPS.encode(), "argo.yaml"))

    assert [(item.name, item.value) for item in settings] == [
        ("application.resourceTrackingMethod", "label"),
        ("resource.customizations.health.argoproj.io_Application", "hs = {}"),
        ("kustomize.buildOptions.v5", "--enable-helm"),
        ("applicationsetcontroller.enable.progressive.syncs", "true"),
    ]
    assert str(settings[0].location) == 'argo.yaml:1:1 (data["application.resourceTrackingMethod"])'


def test_settings_are_found_among_the_values_of_the_chart() -> None:
    values: JsonObject = {
        "configs": {
            "cm": {"kustomize.buildOptions": "--enable-helm", "admin.enabled": True},
            "params": {"controller.sync.wave.delay.seconds": 0, "helm.enable": False},
        }
    }

    chart_values = read_chart_values(values, Location("values.yaml"))

    assert [(item.name, item.value) for item in chart_values] == [
        ("kustomize.buildOptions", "--enable-helm"),
        ("controller.sync.wave.delay.seconds", "0"),
        ("helm.enable", "false"),
    ]
    assert str(chart_values[0].location) == 'values.yaml (configs.cm["kustomize.buildOptions"])'


@pytest.mark.parametrize("values", [{}, {"configs": []}, {"configs": {"cm": "x", "params": None}}])
def test_empty_values_have_no_settings(values: JsonObject) -> None:
    assert read_chart_values(values, Location("values.yaml")) == ()
