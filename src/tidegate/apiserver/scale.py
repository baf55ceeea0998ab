"""The `scale` subresource of a workload."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text, get_value
from tidegate.model.k8s.kinds import DEPLOYMENT, REPLICA_SET, STATEFUL_SET
from tidegate.model.k8s.labels import format_selector
from tidegate.model.k8s.objects import JsonObject, Kind, LiveObject

SCALE = "scale"
SCALABLE_KINDS = frozenset(
    [
        DEPLOYMENT,
        REPLICA_SET,
        STATEFUL_SET,
    ]
)
SCALE_KIND = Kind("autoscaling", "v1", "Scale")
METADATA_KEYS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def build_scale(live: LiveObject) -> bytes:
    """Return the Scale of an object.

    Like `scaleFromDeployment` in `pkg/registry/apps/deployment/storage/storage.go` of Kubernetes
    1.36.4 and `scaleFromCustomResource` in `pkg/registry/customresource/etcd.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    body: JsonObject = msgspec.json.decode(live.body)
    metadata = get_mapping(body, "metadata")
    spec = get_int(body, "spec", "replicas") if "replicas" in get_mapping(body, "spec") else 1
    scale: JsonObject = {
        "kind": SCALE_KIND.name,
        "apiVersion": SCALE_KIND.api_version,
        "metadata": {key: metadata[key] for key in METADATA_KEYS if key in metadata},
        "spec": {"replicas": spec},
        "status": {
            "replicas": get_int(body, "status", "replicas"),
            "selector": format_selector(get_value(body, "spec", "selector")),
        },
    }
    return msgspec.json.encode(scale)


def patch_from_scale(scale: bytes) -> tuple[bytes, str]:
    """Return the merge patch for a Scale, or for a merge patch of one, and its resource version."""
    body: JsonObject = msgspec.json.decode(scale)
    patch = {"spec": {"replicas": get_int(body, "spec", "replicas")}}
    return msgspec.json.encode(patch), get_text(body, "metadata", "resourceVersion")
