"""What runs already is taken over on a real server: fields that Git no longer has go, pods stay."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.e2e.output import events_of
from tests.support.helm_oracle import find_helm, run_helm
from tests.support.kubectl import kubectl
from tests.support.repositories import Repository, application, deployment
from tests.support.tidegate_command import Tidegate
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.objects import Json, JsonObject

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

TRACKED = "argocd.argoproj.io/tracking-id"


def as_it_was(namespace: str, **notes: str) -> JsonObject:
    """The Deployment with a label and a field that Git has given up since."""
    body = deployment("web")
    metadata: Json = {
        **get_mapping(body, "metadata"),
        "namespace": namespace,
        "labels": {"team": "old"},
        "annotations": {**notes},
    }
    return {
        **body,
        "metadata": metadata,
        "spec": {**get_mapping(body, "spec"), "minReadySeconds": 1},
    }


def make(who: str, namespace: str, config: Path, folder: Path) -> None:
    """Let another client create it."""
    if who == "helm":
        chart = folder / "chart"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
        text = msgspec.json.encode(as_it_was(namespace)).decode()
        (chart / "templates" / "web.yaml").write_text(text)
        words = ("install", "web", str(chart), "--namespace", namespace)
        ended = run_helm(find_helm(), *words, "--kubeconfig", str(config), user_home=folder)
        assert ended.returncode == 0, ended.stderr
        return
    tracked = {TRACKED: f"web:apps/Deployment:{namespace}/web"} if who == "argocd" else {}
    text = msgspec.json.encode(as_it_was(namespace, **tracked)).decode()
    manager = "argocd-controller" if who == "argocd" else "kubectl-client-side-apply"
    kubectl(config, "apply", "-f", "-", "--field-manager", manager, text=text)


def pods(config: Path, namespace: str) -> set[str]:
    document = json.loads(kubectl(config, "get", "pods", "-n", namespace, "-o", "json"))
    return {item["metadata"]["uid"] for item in document["items"]}


@pytest.mark.parametrize("who", ["kubectl", "helm", "argocd"])
async def test_objects_of_another_tool_are_adopted_without_a_pod_restart(
    plane: ControlPlane, tmp_path: Path, who: str
) -> None:
    config, namespace = plane.kubeconfig("admin"), f"adopted-{who}"
    kubectl(config, "create", "namespace", namespace)
    make(who, namespace, config, tmp_path)
    wait = ("--for=condition=Available", "deployment/web", "-n", namespace, "--timeout=60s")
    kubectl(config, "wait", *wait)
    before = pods(config, namespace)
    repository = Repository(tmp_path / "platform")
    repository.put("apps/web.yaml", application("web", "web", into=namespace))
    repository.put("web/all.yaml", deployment("web"))
    args = (repository.root, "--kubeconfig", config, "--timeout", "100s")

    ran = await Tidegate(tmp_path).run("sync", "--yes", *args)

    assert ran.code == 0, ran.stdout + ran.stderr
    live = json.loads(kubectl(config, "get", "deployment", "web", "-n", namespace, "-o", "json"))
    assert pods(config, namespace) == before != set()
    assert get_value(live, "spec", "minReadySeconds") is None
    assert "team" not in get_mapping(live, "metadata", "labels")
    assert live["metadata"]["annotations"][TRACKED] == f"web:apps/Deployment:{namespace}/web"
    again = await Tidegate(tmp_path).run("sync", "--yes", *args, "-o", "json")
    assert again.code == 0
    assert events_of(again.stdout, "object.written") == []
    assert len(events_of(again.stdout, "rollout.finished")) == 1
