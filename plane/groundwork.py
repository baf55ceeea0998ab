"""What a workload needs of an empty cluster: a node to run on, a class for its volumes."""

from __future__ import annotations

from collections.abc import Mapping

from plane.client import Client
from tidegate.model.k8s.objects import Json

NODE: Mapping[str, Json] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "kwok-0",
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {
            "kubernetes.io/hostname": "kwok-0",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "type": "kwok",
        },
    },
}
STORAGE_CLASS: Mapping[str, Json] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": "kubernetes.io/host-path",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}


def lay_groundwork(client: Client) -> None:
    """Create the node and the storage class."""
    client.post("/api/v1/nodes", NODE)
    client.post("/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASS)


def has_settled(client: Client) -> bool:
    """Whether a pod that is made now will run at once."""
    account = client.get("/api/v1/namespaces/default/serviceaccounts/default")
    return account is not None and is_open(client.get("/api/v1/nodes/kwok-0"))


def is_open(node: Json) -> bool:
    """Whether a node is Ready and bears no taint, as every new node does for a moment."""
    match node:
        case {"spec": {"taints": [_, *_]}}:
            return False
        case {"status": {"conditions": list(conditions)}}:
            return any(_says_ready(condition) for condition in conditions)
        case _:
            return False


def _says_ready(condition: Json) -> bool:
    match condition:
        case {"type": "Ready", "status": "True"}:
            return True
        case _:
            return False
