"""The workloads among which operators are found: whether one is there, and since when."""

from __future__ import annotations

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind
from tidegate.model.reading import mapping, mappings, number, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.server.store import Stored

WORKLOADS = (
    Kind("apps", "v1", "Deployment"),
    Kind("apps", "v1", "StatefulSet"),
    Kind("apps", "v1", "DaemonSet"),
)


def is_available(workload: Stored) -> bool:
    """Whether at least one of its pods is there to do its work."""
    if workload.is_deleting:
        return False
    status = mapping(workload.body, "status")
    counts = ("availableReplicas", "numberAvailable", "readyReplicas")
    return any(number(status, count) > 0 for count in counts)


def available_since(workload: Stored) -> Ms:
    for condition in mappings(workload.body, "status", "conditions"):
        if condition.get("type") == "Available" and condition.get("status") == "True":
            return moment_of(condition.get("lastTransitionTime")) or touched(workload)
    return touched(workload)


def touched(stored: Stored) -> Ms:
    """When an object was last changed, as far as its fields' owners tell."""
    stamps = [entry.time for entry in stored.owners if entry.time]
    last = max(stamps, default="") or text(stored.metadata, "creationTimestamp")
    return moment_of(last) or Ms(0)
