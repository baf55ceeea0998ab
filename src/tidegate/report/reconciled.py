"""Units and sources of Flux as `flux get` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.report.applications import head_document
from tidegate.report.tables import noted_lines

Body = dict[str, Json]
ORIGIN = ("SOURCE", "PATH")
HEADS = ("NAME", "REVISION", "SUSPENDED", "READY", "MESSAGE")
WAITING = "waiting to be reconciled"
_HASH = late(r"\b([0-9a-f]{8})[0-9a-f]{32,120}\b")


class ReconciledRow(msgspec.Struct, frozen=True):
    """An object of Flux, as Git has it and as it lives; and how it stands, where it is a unit.

    `stands` is empty where nothing is compared: a source has nothing of its own in a cluster.
    """

    own: Body
    live: Body
    stands: str = ""
    is_well: bool = False

    @property
    def kind(self) -> str:
        return text(self.own, "kind")

    @property
    def namespace(self) -> str:
        return text(self.live or self.own, "metadata", "namespace")

    @property
    def labels(self) -> Body:
        return mapping(self.own, "metadata", "labels")

    @property
    def name(self) -> str:
        return text(self.own, "metadata", "name")


def reconciled_lines(
    rows: Sequence[ReconciledRow], *, everywhere: bool, wide: bool = False, room: int | None = None
) -> Iterator[str]:
    """A table; with `everywhere` each says its namespace, and when `wide` where it comes from.

    With too little room a message stands below its line, unless it is to be wide.
    """
    heads = ("NAMESPACE", *HEADS) if everywhere else HEADS
    heads = (*heads[:-1], *ORIGIN, heads[-1]) if wide else heads
    shown = [_cells(row, wide=wide)[0 if everywhere else 1 :] for row in rows]
    yield from noted_lines(heads, shown, None if wide else room)


def _cells(row: ReconciledRow, *, wide: bool) -> tuple[str, ...]:
    ready, message = _ready(row)
    short = str if wide else _short
    return (
        row.namespace,
        row.name,
        short(_revision(row.live)),
        str(bool(part(row.live or row.own, "spec", "suspend"))),
        ready,
        *(_origin(row.own) if wide else ()),
        short(message),
    )


def _origin(own: Body) -> tuple[str, str]:
    """The source that a unit takes from, and what it takes; of a source, its address."""
    spec = mapping(own, "spec")
    chart = mapping(spec, "chart", "spec")
    named = mapping(spec, "sourceRef") or mapping(chart, "sourceRef") or mapping(spec, "chartRef")
    source = f"{text(named, 'kind')}/{text(named, 'name')}" if named else text(spec, "url")
    taken = text(spec, "path") or text(chart, "chart") or text(spec, "chart")
    return source or "-", taken or "-"


def _revision(live: Body) -> str:
    status = mapping(live, "status")
    applied = text(status, "lastAppliedRevision") or text(status, "artifact", "revision")
    history = mappings(status, "history")
    return applied or (text(history[0], "chartVersion") if history else "")


def _ready(row: ReconciledRow) -> tuple[str, str]:
    """What its own object says; where that says nothing, what is found here."""
    for one in mappings(row.live, "status", "conditions"):
        if one.get("type") == "Ready":
            return text(one, "status"), text(one, "message")
    return (str(row.is_well), row.stands) if row.stands else ("False", WAITING)


def _short(words: str) -> str:
    return _HASH.sub(r"\1", words)


def reconciled_document(row: ReconciledRow) -> Body:
    """For programs, in the form of the object: as much of it as holds no values."""
    ready, message = _ready(row)
    return {
        "apiVersion": text(row.own, "apiVersion"),
        "kind": row.kind,
        "metadata": head_document(row.own),
        "spec": {"suspend": bool(part(row.live or row.own, "spec", "suspend"))},
        "status": {
            "conditions": [*mappings(row.live, "status", "conditions")],
            "lastAppliedRevision": _revision(row.live),
        },
        "ready": ready,
        "message": message,
    }
