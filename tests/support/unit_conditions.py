"""Helpers that several folders of tests share."""

from __future__ import annotations

from tests.support.kept_sandbox import EVENT, KeptSandbox
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, Kind

CONFIG_MAP = Kind("", "v1", "ConfigMap")


def condition(body: JsonObject, name: str) -> tuple[str, str, str] | None:
    """Status, reason and message of a condition."""
    found = (
        one for one in get_mappings(body, "status", "conditions") if get_text(one, "type") == name
    )
    one = next(found, None)
    return (
        None
        if one is None
        else (get_text(one, "status"), get_text(one, "reason"), get_text(one, "message"))
    )


def told(cluster: KeptSandbox, home: str) -> set[tuple[str, str]]:
    """About whom which Events were sent."""
    events = cluster.all(EVENT, home).values()
    return {(get_text(one, "involvedObject", "name"), get_text(one, "reason")) for one in events}
