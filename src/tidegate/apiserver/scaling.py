"""The `scale` of a workload: how many replicas it has and shall have."""

from __future__ import annotations

import msgspec

from tidegate.model.labels import write_labels
from tidegate.model.objects import Json, Kind, Live
from tidegate.model.reading import mapping, number, part, text

SCALE = "scale"
SCALED = frozenset(
    [
        Kind("apps", "v1", "Deployment"),
        Kind("apps", "v1", "ReplicaSet"),
        Kind("apps", "v1", "StatefulSet"),
    ]
)
RESPONSE = Kind("autoscaling", "v1", "Scale")
KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")

Body = dict[str, Json]


def scale_of(live: Live) -> bytes:
    """A Scale, as a server makes it of an object."""
    body: Body = msgspec.json.decode(live.body)
    metadata = mapping(body, "metadata")
    spec = number(body, "spec", "replicas") if "replicas" in mapping(body, "spec") else 1
    scale: Body = {
        "kind": RESPONSE.name,
        "apiVersion": RESPONSE.api_version,
        "metadata": {key: metadata[key] for key in KEPT if key in metadata},
        "spec": {"replicas": spec},
        "status": {
            "replicas": number(body, "status", "replicas"),
            "selector": write_labels(part(body, "spec", "selector")),
        },
    }
    return msgspec.json.encode(scale)


def change_of(asked: bytes) -> tuple[bytes, str]:
    """What a Scale, or a merge patch of one, asks of its object; and the version it was made of."""
    body: Body = msgspec.json.decode(asked)
    wanted = {"spec": {"replicas": number(body, "spec", "replicas")}}
    return msgspec.json.encode(wanted), text(body, "metadata", "resourceVersion")
