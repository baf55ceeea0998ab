"""Conditions in the status of unit resources."""

from __future__ import annotations

from tests.support.persistent_sandbox import EVENT, PersistentSandbox
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, Kind

CONFIG_MAP = Kind("", "v1", "ConfigMap")


def condition(body: JsonObject, name: str) -> tuple[str, str, str] | None:
    """Status, reason and message of a condition."""
    matches = (
        condition
        for condition in get_mappings(body, "status", "conditions")
        if get_text(condition, "type") == name
    )
    item = next(matches, None)
    return (
        None
        if item is None
        else (get_text(item, "status"), get_text(item, "reason"), get_text(item, "message"))
    )


def list_results(cluster: PersistentSandbox, namespace: str) -> set[tuple[str, str]]:
    """About whom which Events were sent."""
    events = cluster.all(EVENT, namespace).values()
    return {
        (get_text(event, "involvedObject", "name"), get_text(event, "reason")) for event in events
    }
