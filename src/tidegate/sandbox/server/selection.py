"""Which stored objects a list or a watch is about."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.model.labels import SelectorError, read_fields, read_labels
from tidegate.model.objects import Kind
from tidegate.model.reading import part
from tidegate.sandbox.server.store import Stored
from tidegate.world.calls import Selection

Predicate = Callable[[Stored], bool]

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


def selects(selection: Selection) -> Predicate | None:
    """Whether an object belongs; None where every one does."""
    labels, fields = read_labels(selection.labels), read_fields(selection.fields)
    known = EVERYWHERE | SELECTABLE.get(selection.kind, frozenset())
    for one in fields:
        if one.key not in known:
            raise SelectorError(f"field label not supported: {one.key}")
    if not labels and not fields:
        return None
    return lambda stored: (
        all(one.holds(stored.labels) for one in labels)
        and all(one.holds({one.key: _field(stored, one.key)}) for one in fields)
    )


def _field(stored: Stored, path: str) -> str:
    match path:
        case "metadata.name":
            return stored.ref.name
        case "metadata.namespace":
            return stored.ref.namespace
        case _:
            found = part(stored.body, *path.split("."))
            return "" if found is None else str(found)
