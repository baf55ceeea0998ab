"""Kinds in no namespace are written to none: a real server says where an object is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import events_of
from tests.support.kubectl import kubectl
from tests.support.tidegate_command import Tidegate
from tidegate.model.k8s.json_fields import get_mapping

pytestmark = pytest.mark.kube
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
GROUP = "cert-manager.io"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"clusterissuers.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "ClusterIssuer", "plural": "clusterissuers"},
        "scope": "Cluster",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
    },
}
ISSUER = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "ClusterIssuer",
    "metadata": {"name": "scopes-issuer"},
    "spec": {"selfSigned": {}},
}
SETTING = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scopes-setting"}}


async def test_a_cluster_wide_kind_of_the_plan_gets_no_namespace(
    plane: ControlPlane, tmp_path: Path
) -> None:
    folder = tmp_path / "part"
    folder.mkdir()
    for name, body in (("definition", DEFINITION), ("issuer", ISSUER), ("setting", SETTING)):
        (folder / f"{name}.json").write_text(json.dumps(body))
    args = ("--kubeconfig", plane.kubeconfig("admin"), "--namespace", "default")
    user = Tidegate(tmp_path)

    planned = await user.run("plan", folder, *args)
    synced = await user.run("sync", folder, *args, "--yes", "--timeout", "3s", "-o", "json")
    result = kubectl(
        plane.kubeconfig("admin"), "get", "clusterissuer", "scopes-issuer", "-o", "json"
    )
    ended = await user.run("delete", folder, *args, "--yes", "--yes-delete-contents")

    cells = [line.split()[-3:] for line in planned.lines]
    assert ["create", "ClusterIssuer", "scopes-issuer"] in cells
    assert ["create", "ConfigMap", "default/scopes-setting"] in cells
    awaited = {event["name"] for event in events_of(synced.stdout, "gate.waiting")}
    assert "scopes-issuer" in awaited, "no operator sets it up"
    assert "namespace" not in get_mapping(json.loads(result), "metadata")
    assert ended.code == 0, ended.stdout + ended.stderr
