"""Label and field selectors: written as kubectl takes them, asked of one object at a time."""

from __future__ import annotations

import re
from collections.abc import Callable

from tidegate.model.objects import Json, Kind
from tidegate.sandbox.server.store import Stored
from tidegate.world.calls import Selection

Predicate = Callable[[Stored], bool]

REQUIREMENT = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<missing>[^\s,!=()]+)"
    r"|(?P<key>[^\s,!=()]+)\s*(?:(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<sign>==|!=|=)\s*(?P<value>[^\s,]*))?)\s*(?:,|$)"
)
FIELD = re.compile(r"\s*(?P<path>[^\s,!=]+)\s*(?P<sign>==|!=|=)\s*(?P<value>[^\s,]*)\s*(?:,|$)")

EVERYWHERE = frozenset({"metadata.name", "metadata.namespace"})
SELECTABLE = {
    Kind("", "v1", "Pod"): frozenset(
        {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
         "status.phase", "status.podIP", "status.nominatedNodeName"}
    ),
    Kind("", "v1", "Secret"): frozenset({"type"}),
    Kind("", "v1", "Namespace"): frozenset({"status.phase"}),
    Kind("", "v1", "Node"): frozenset({"spec.unschedulable"}),
    Kind("", "v1", "Service"): frozenset({"spec.clusterIP", "spec.type"}),
    Kind("batch", "v1", "Job"): frozenset({"status.successful"}),
    Kind("", "v1", "Event"): frozenset(
        {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
         "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
         "involvedObject.fieldPath", "reason", "reportingComponent", "type"}
    ),
}  # fmt: skip
"""The fields that can be selected by, beyond name and namespace."""


class SelectorError(ValueError):
    """A selector that a server would refuse."""


def selects(selection: Selection) -> Predicate | None:
    """Whether an object belongs; None where every one does."""
    labels = _labels(selection.labels)
    fields = _fields(selection.fields, selection.kind)
    wanted = [*labels, *fields]
    if not wanted:
        return None
    return lambda stored: all(predicate(stored) for predicate in wanted)


def _labels(text: str) -> list[Predicate]:
    return [_label(found) for found in _requirements(text, REQUIREMENT)]


def _label(found: re.Match[str]) -> Predicate:
    if found["absent"]:
        missing = found["missing"]
        return lambda stored: missing not in stored.labels
    key = found["key"]
    if found["operator"]:
        values = {value.strip() for value in found["values"].split(",")}
        wants = found["operator"] == "in"
        return lambda stored: (stored.labels.get(key) in values) is wants
    if found["sign"]:
        value, equal = found["value"], found["sign"] != "!="
        return lambda stored: (stored.labels.get(key) == value) is equal
    return lambda stored: key in stored.labels


def _fields(text: str, kind: Kind) -> list[Predicate]:
    known = EVERYWHERE | SELECTABLE.get(kind, frozenset())
    predicates: list[Predicate] = []
    for found in _requirements(text, FIELD):
        if found["path"] not in known:
            raise SelectorError(f"field label not supported: {found['path']}")
        predicates.append(_field(found["path"], found["value"], equal=found["sign"] != "!="))
    return predicates


def _field(path: str, value: str, *, equal: bool) -> Predicate:
    if path == "metadata.name":
        return lambda stored: (stored.ref.name == value) is equal
    if path == "metadata.namespace":
        return lambda stored: (stored.ref.namespace == value) is equal
    parts = path.split(".")

    def holds(stored: Stored) -> bool:
        found: Json = stored.body
        for part in parts:
            found = found.get(part) if isinstance(found, dict) else None
        return (("" if found is None else str(found)) == value) is equal

    return holds


def _requirements(text: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    found, position = [], 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None or match.end() == position:
            raise SelectorError(f"unable to parse requirement: {text}")
        found.append(match)
        position = match.end()
    return found
