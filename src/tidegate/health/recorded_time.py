"""The time since which an object is ready, by its status and its managed fields.

Times are those of the cluster, in whole seconds. A final time cannot change: a Job completes once.
Others can: a Deployment that loses a pod becomes available again.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import Ms, parse_timestamp

STATUS = "status"
FINAL_CONDITIONS = frozenset({"Complete", "Established"})
READY_CONDITIONS = (
    "Ready",
    "Available",
    "Complete",
    "Established",
    "Succeeded",
    "Healthy",
    "Programmed",
)
"""Conditions that mean that an object is ready."""
ROLLED_OUT = "NewReplicaSetAvailable"


class RecordedTime(NamedTuple):
    """A time that the cluster has recorded."""

    at: Ms
    """The time."""
    is_final: bool
    """Whether the time cannot change any more."""


def read_timestamp(body: Json, *path: str) -> Ms | None:
    """Return the time at a path, or None if it is missing or invalid."""
    try:
        return parse_timestamp(get_text(body, *path)) if get_text(body, *path) else None
    except ValueError:
        return None


def find_ready_time(body: JsonObject) -> RecordedTime | None:
    """Return when the object became ready, or None if no field records it."""
    completed = read_timestamp(body, "status", "completionTime")
    if completed is not None:
        return RecordedTime(completed, is_final=True)
    times = [
        time for time in map(_condition_time, get_mappings(body, "status", "conditions")) if time
    ]
    return max(times, default=None) or _status_write_time(body)


def _condition_time(condition: JsonObject) -> RecordedTime | None:
    type_, is_true = get_text(condition, "type"), get_text(condition, "status") == "True"
    if is_true and type_ == "Progressing" and get_text(condition, "reason") == ROLLED_OUT:
        time = read_timestamp(condition, "lastUpdateTime")
    elif is_true and type_ in READY_CONDITIONS:
        time = read_timestamp(condition, "lastTransitionTime")
    else:
        return None
    return None if time is None else RecordedTime(time, type_ in FINAL_CONDITIONS)


def _status_write_time(body: JsonObject) -> RecordedTime | None:
    """Return the time of the last write to the status: it has not changed since."""
    if not get_mapping(body, "status"):
        return None
    time = find_last_write(body, subresource=STATUS)
    return None if time is None else RecordedTime(time, is_final=False)


def find_last_write(body: JsonObject, manager: str = "", *, subresource: str = "") -> Ms | None:
    """Return the time of the last write, by any manager or by `manager`.

    Returns None if unknown.
    """
    times = [
        read_timestamp(entry, "time")
        for entry in get_mappings(body, "metadata", "managedFields")
        if get_text(entry, "subresource") == subresource
        and manager in {"", get_text(entry, "manager")}
    ]
    return max((time for time in times if time is not None), default=None)


def find_creator(body: JsonObject) -> str:
    """Return the manager that created the object.

    Returns "" unless exactly one wrote in that second.
    """
    created = get_text(body, "metadata", "creationTimestamp")
    names = [
        get_text(entry, "manager")
        for entry in get_mappings(body, "metadata", "managedFields")
        if get_text(entry, "time") == created and not get_text(entry, "subresource")
    ]
    return names[0] if len(names) == 1 else ""
