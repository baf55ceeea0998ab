"""Fields of a workload that Git leaves out and other clients set, so that no pod runs its template.

The health checks of Argo CD and kstatus accept such a workload: they judge the live object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_int, get_text, get_value, object_kind
from tidegate.model.k8s.objects import Json, JsonObject

REPLICAS = ("spec", "replicas")
STRATEGY = ("spec", "updateStrategy", "type")
PARTITION = ("spec", "updateStrategy", "rollingUpdate", "partition")
POD_SPEC = ("spec", "template", "spec")
NODE_FIELDS = ("nodeSelector", "affinity", "nodeName")
"""Fields of a pod that limit the nodes it fits."""


class FieldOverride(NamedTuple):
    """A field that another client has set."""

    path: tuple[str, ...]
    value: Json


OverrideRule = Callable[[JsonObject], FieldOverride | None]


def find_override(desired: JsonObject, live: JsonObject) -> FieldOverride | None:
    """Return the field that keeps the pods of a live workload from running the desired template.

    Only fields that the desired object leaves out count, and only while pods are missing.
    """
    kind = object_kind(live)
    for rule in RULES.get((kind.group, kind.name), ()):
        override = rule(live)
        if override is not None and get_value(desired, *override.path) is None:
            return override
    return None


def _find_zero_replicas(live: JsonObject) -> FieldOverride | None:
    return FieldOverride(REPLICAS, 0) if get_value(live, *REPLICAS) == 0 else None


def _find_manual_update(live: JsonObject) -> FieldOverride | None:
    """Return the strategy by which only deleted pods are updated, while old pods run."""
    is_manual = get_text(live, *STRATEGY) == "OnDelete" and _has_old_pods(live)
    return FieldOverride(STRATEGY, "OnDelete") if is_manual else None


def _find_partition(live: JsonObject) -> FieldOverride | None:
    """Return the partition of a StatefulSet that keeps old pods."""
    partition = get_int(live, *PARTITION)
    return FieldOverride(PARTITION, partition) if partition and _has_old_pods(live) else None


def _find_node_limit(live: JsonObject) -> FieldOverride | None:
    """Return the field by which a DaemonSet fits no node."""
    if get_int(live, "status", "desiredNumberScheduled"):
        return None
    fields = ((*POD_SPEC, name) for name in NODE_FIELDS)
    values = ((path, get_value(live, *path)) for path in fields)
    return next((FieldOverride(path, value) for path, value in values if value is not None), None)


def _has_old_pods(live: JsonObject) -> bool:
    if object_kind(live).name == "DaemonSet":
        updated = get_int(live, "status", "updatedNumberScheduled")
        return updated < get_int(live, "status", "desiredNumberScheduled")
    return get_int(live, "status", "updatedReplicas") < get_int(live, "status", "replicas")


RULES: Mapping[tuple[str, str], tuple[OverrideRule, ...]] = {
    ("apps", "Deployment"): (_find_zero_replicas,),
    ("apps", "ReplicaSet"): (_find_zero_replicas,),
    ("apps", "StatefulSet"): (_find_zero_replicas, _find_manual_update, _find_partition),
    ("apps", "DaemonSet"): (_find_manual_update, _find_node_limit),
    ("argoproj.io", "Rollout"): (_find_zero_replicas,),
}
