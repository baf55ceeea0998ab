"""Objects of Argo CD's cases, what their annotations say, and what becomes of them."""

from __future__ import annotations

from tests.support.builders import make_object
from tests.support.builders import make_pod_template as pod_template
from tests.support.rollout_statuses import AT
from tidegate.dialect.argo.hooks import DELETE_POLICY, HOOK
from tidegate.dialect.argo.options import SYNC_OPTIONS
from tidegate.dialect.argo.waves import WAVE
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject

PORTS: list[Json] = [{"port": 80}]


def a_pod(name: str = "web") -> JsonObject:
    container: Json = {"name": "main", "image": "app:1"}
    return make_object("v1 Pod", name, spec={"containers": [container], "restartPolicy": "Never"})


def a_server_pod(name: str = "web") -> JsonObject:
    """A container that runs forever."""
    container: Json = {"name": "main", "image": "app:1"}
    return make_object("v1 Pod", name, spec={"containers": [container], "restartPolicy": "Always"})


def a_service(name: str = "web") -> JsonObject:
    return make_object("v1 Service", name, spec={"selector": {"app": name}, "ports": PORTS})


def a_balancer(name: str = "web") -> JsonObject:
    """A Service that wants an address of its own."""
    spec: JsonObject = {"selector": {"app": name}, "ports": PORTS, "type": "LoadBalancer"}
    return make_object("v1 Service", name, spec=spec)


def a_volume(name: str) -> JsonObject:
    spec: JsonObject = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp"},  # noqa: S108 - no process mounts it
    }
    return make_object("v1 PersistentVolume", name, namespace="", spec=spec)


def a_lease(name: str) -> JsonObject:
    """Of a kind that has no rank."""
    return make_object("coordination.k8s.io/v1 Lease", name, spec={})


def a_pod_template(name: str) -> JsonObject:
    """Of another kind that has no rank."""
    return make_object("v1 PodTemplate", name, template=pod_template(name))


def annotated(body: JsonObject, name: str, note: str) -> JsonObject:
    metadata = get_mapping(body, "metadata")
    notes: JsonObject = {**get_mapping(metadata, "annotations"), name: note}
    return {**body, "metadata": {**metadata, "annotations": notes}}


def in_wave(wave: int, body: JsonObject) -> JsonObject:
    return annotated(body, WAVE, str(wave))


def a_hook(when: str, body: JsonObject, *, deletes: str = "") -> JsonObject:
    """`when` and `deletes` in Argo CD's words, with commas."""
    hook = annotated(body, HOOK, when)
    return annotated(hook, DELETE_POLICY, deletes) if deletes else hook


def with_options(options: str, body: JsonObject) -> JsonObject:
    return annotated(body, SYNC_OPTIONS, options)


def running() -> JsonObject:
    """A pod that is there."""
    return _pod("Running", {"running": {"startedAt": AT}}, ready=True)


def succeeded() -> JsonObject:
    """A pod that has done its work."""
    return _pod("Succeeded", {"terminated": {"exitCode": 0, "finishedAt": AT}})


def failed(code: int = 1) -> JsonObject:
    """A pod whose program ended badly."""
    return _pod("Failed", {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": AT}})


def _pod(phase: str, state: JsonObject, *, ready: bool = False) -> JsonObject:
    result = "True" if ready else "False"
    conditions: list[Json] = [
        {"type": kind, "status": result, "lastTransitionTime": AT}
        for kind in ("Ready", "ContainersReady")
    ]
    container: Json = {
        "name": "main",
        "image": "app:1",
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "state": state,
    }
    return {"phase": phase, "conditions": conditions, "containerStatuses": [container]}


def operations(body: JsonObject) -> set[str]:
    """The operations of our field manager on an object: `Apply`, `Update`."""
    entries = get_mappings(body, "metadata", "managedFields")
    return {
        get_text(entry, "operation")
        for entry in entries
        if get_text(entry, "manager") == "tidegate"
    }
