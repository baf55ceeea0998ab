"""Objects for promises: the smallest that a server takes."""

from __future__ import annotations

from tidegate.model.k8s.objects import Json, JsonObject, Kind

CONFIG_MAP = Kind("", "v1", "ConfigMap")
SECRET = Kind("", "v1", "Secret")
SERVICE = Kind("", "v1", "Service")
NAMESPACE = Kind("", "v1", "Namespace")
ACCOUNT = Kind("", "v1", "ServiceAccount")
POD = Kind("", "v1", "Pod")
PVC = Kind("", "v1", "PersistentVolumeClaim")
DEPLOYMENT = Kind("apps", "v1", "Deployment")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
JOB = Kind("batch", "v1", "Job")
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def an_object(kind: Kind, name: str, **parts: Json) -> JsonObject:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name},
        **parts,
    }


def labelled(body: JsonObject, **labels: str) -> JsonObject:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return {**body, "metadata": {**metadata, "labels": {**labels}}}


def a_namespace(name: str) -> JsonObject:
    return an_object(NAMESPACE, name)


def a_config_map(name: str = "web", **data: str) -> JsonObject:
    return an_object(CONFIG_MAP, name, data={**data})


def a_pod_template(*containers: JsonObject, **labels: str) -> JsonObject:
    return {
        "metadata": {"labels": {**(labels or {"app": "web"})}},
        "spec": {"containers": [*(containers or (a_container("app"),))]},
    }


def a_container(name: str, image: str = "registry.example/app:1") -> JsonObject:
    return {"name": name, "image": image}


def a_deployment(name: str = "web", *, replicas: int = 1, **spec: Json) -> JsonObject:
    return an_object(
        DEPLOYMENT,
        name,
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": a_pod_template(),
            **spec,
        },
    )


def a_service(name: str = "web", *ports: JsonObject, **spec: Json) -> JsonObject:
    return an_object(
        SERVICE,
        name,
        spec={"selector": {"app": "web"}, "ports": [*(ports or ({"port": 80},))], **spec},
    )


def a_job(name: str = "migrate", **spec: Json) -> JsonObject:
    pod: JsonObject = {"spec": {"restartPolicy": "Never", "containers": [a_container("run")]}}
    return an_object(JOB, name, spec={"template": pod, **spec})


def a_stateful_set(name: str = "db", **spec: Json) -> JsonObject:
    return an_object(
        STATEFUL_SET,
        name,
        spec={
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "web"}},
            "template": a_pod_template(),
            **spec,
        },
    )


def a_claim(name: str = "disk", *, size: str = "1Gi", **spec: Json) -> JsonObject:
    return an_object(
        PVC,
        name,
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    )


def a_definition(group: str, *, scope: str = "Namespaced") -> JsonObject:
    """A kind of the test's own, with lists of every type: `Gate` in `group`."""
    item: JsonObject = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
    }
    spec: JsonObject = {
        "type": "object",
        "required": ["color"],
        "properties": {
            "color": {"type": "string"},
            "size": {"type": "integer", "default": 1},
            "map": {
                "type": "array",
                "items": item,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "set": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
            },
            "atomic": {"type": "array", "items": {"type": "string"}},
        },
    }
    status: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}
        },
    }
    names: JsonObject = {
        "kind": "Gate",
        "plural": "gates",
        "singular": "gate",
        "listKind": "GateList",
    }
    return an_object(
        CRD,
        f"gates.{group}",
        spec={"group": group, "scope": scope, "names": names, "versions": [version]},
    )


def a_gate(group: str, name: str = "north", **spec: Json) -> JsonObject:
    return an_object(Kind(group, "v1", "Gate"), name, spec={"color": "red", **spec})


def owned_by(body: JsonObject, *, owner: JsonObject, block: bool = False) -> JsonObject:
    """A body with an owner, as a server returns it."""
    metadata, owner_metadata = body["metadata"], owner["metadata"]
    assert isinstance(metadata, dict)
    assert isinstance(owner_metadata, dict)
    reference: JsonObject = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner_metadata["name"],
        "uid": owner_metadata["uid"],
        "blockOwnerDeletion": block,
    }
    return {**body, "metadata": {**metadata, "ownerReferences": [reference]}}


def held(body: JsonObject, finalizer: str = "example.org/hold") -> JsonObject:
    """A body that does not go before its finalizer does."""
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return {**body, "metadata": {**metadata, "finalizers": [finalizer]}}


def at(body: Json, *path: str | int) -> Json:
    """The value at a path of a body, or None."""
    for part in path:
        if isinstance(body, dict) and isinstance(part, str):
            body = body.get(part)
        elif isinstance(body, list) and isinstance(part, int) and part < len(body):
            body = body[part]
        else:
            return None
    return body
