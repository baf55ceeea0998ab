"""Charts in a registry, and repositories with a release of one."""

from __future__ import annotations

from pathlib import Path

from tests.support.chart_archives import TarMaker
from tests.support.releases import helm_release
from tests.support.repositories import Repository, namespace
from tidegate.model.k8s.objects import Json, JsonObject

LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {version: '{{ .Chart.Version }}', to: TO}
"""


def a_chart(to: str, version: str = "1.0.0") -> bytes:
    metadata = f"apiVersion: v2\nname: shop\nversion: {version}\n".encode()
    template = TEMPLATE.replace("TO", to).encode()
    return TarMaker().add("shop/Chart.yaml", metadata).add("shop/templates/a.yaml", template).gz()


def release_of_artifact(
    root: Path, origin: str, operation: str = "copy", *, namespace: str = "shop", **ref: Json
) -> Path:
    """One release, whose chart an OCIRepository has."""
    spec: JsonObject = {
        "interval": "10m",
        "url": f"oci://{origin.removeprefix('http://')}/charts/web",
        "insecure": True,
        "ref": ref,
        "layerSelector": {"mediaType": LAYER, "operation": operation},
    }
    release = helm_release(namespace, chartRef={"kind": "OCIRepository", "name": "charts"})
    unit_resource = release["spec"]
    assert isinstance(unit_resource, dict)
    del unit_resource["chart"]
    return _put(root, namespace, "OCIRepository", spec, release)


def release_of_registry(root: Path, origin: str, *, namespace: str, version: str) -> Path:
    """One release, whose chart is in a HelmRepository that is a registry."""
    spec: JsonObject = {
        "type": "oci",
        "interval": "10m",
        "url": f"oci://{origin.removeprefix('http://')}/charts",
        "insecure": True,
    }
    source: Json = {"kind": "HelmRepository", "name": "charts"}
    chart: Json = {"spec": {"chart": "web", "version": version, "sourceRef": source}}
    return _put(root, namespace, "HelmRepository", spec, helm_release(namespace, chart=chart))


def _put(
    root: Path, target_namespace: str, kind: str, spec: JsonObject, release: JsonObject
) -> Path:
    source: JsonObject = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": kind,
        "metadata": {"name": "charts", "namespace": target_namespace},
        "spec": spec,
    }
    Repository(root).put("clusters/main/all.yaml", source, namespace(target_namespace), release)
    return root
