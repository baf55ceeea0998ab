"""Which stored objects a list or a watch is about."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.model.labels import SelectorError, read_fields, read_labels
from tidegate.model.reading import part
from tidegate.sandbox.kinds import SELECTABLE
from tidegate.sandbox.server.store import Stored
from tidegate.world.calls import Selection

Predicate = Callable[[Stored], bool]

EVERYWHERE = frozenset({"metadata.name", "metadata.namespace"})


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
