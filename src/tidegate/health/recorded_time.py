"""Since when an object is as it is, by what its server and its controllers have written down.

    Since(at, is_final)

The moments are those of the cluster, in whole seconds. One that is final cannot come again: a Job
completes once. Others turn: a Deployment that loses a pod is available anew.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import Ms, parse_timestamp

STATUS = "status"
ONCE = frozenset({"Complete", "Established"})
WELL = ("Ready", "Available", "Complete", "Established", "Succeeded", "Healthy", "Programmed")
"""Conditions that say that an object is well."""
ROLLED_OUT = "NewReplicaSetAvailable"


class Since(NamedTuple):
    """A moment, whether it is the only one of its kind, and who tells it."""

    at: Ms
    is_final: bool
    told_by: str


def moment_in(body: Json, *path: str) -> Ms | None:
    """The moment that stands at a path."""
    try:
        return parse_timestamp(get_text(body, *path)) if get_text(body, *path) else None
    except ValueError:
        return None


def ready_since(body: JsonObject) -> Since | None:
    """When it became well; None where nobody has written that down."""
    done = moment_in(body, "status", "completionTime")
    if done is not None:
        return Since(done, True, "completionTime")
    found = [one for one in map(_condition, get_mappings(body, "status", "conditions")) if one]
    return max(found, default=None) or _status_write(body)


def _condition(one: JsonObject) -> Since | None:
    name, is_true = get_text(one, "type"), get_text(one, "status") == "True"
    if is_true and name == "Progressing" and get_text(one, "reason") == ROLLED_OUT:
        at = moment_in(one, "lastUpdateTime")
    elif is_true and name in WELL:
        at = moment_in(one, "lastTransitionTime")
    else:
        return None
    return None if at is None else Since(at, name in ONCE, f"condition {name}")


def _status_write(body: JsonObject) -> Since | None:
    """Since its status was last written it has not changed."""
    if not get_mapping(body, "status"):
        return None
    at = last_write(body, subresource=STATUS)
    return None if at is None else Since(at, False, STATUS)


def last_write(body: JsonObject, manager: str = "", *, subresource: str = "") -> Ms | None:
    """When somebody last changed it, or a manager if one is named."""
    moments = [
        moment_in(entry, "time")
        for entry in get_mappings(body, "metadata", "managedFields")
        if get_text(entry, "subresource") == subresource
        and manager in {"", get_text(entry, "manager")}
    ]
    return max((one for one in moments if one is not None), default=None)


def made_by(body: JsonObject) -> str:
    """Who was there when it was made, by the managers that wrote in that very second."""
    made = get_text(body, "metadata", "creationTimestamp")
    names = [
        get_text(entry, "manager")
        for entry in get_mappings(body, "metadata", "managedFields")
        if get_text(entry, "time") == made and not get_text(entry, "subresource")
    ]
    return names[0] if len(names) == 1 else ""
