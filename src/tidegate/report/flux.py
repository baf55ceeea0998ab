"""Flux units and sources, formatted like the output of `flux get`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.report.applications import metadata_document
from tidegate.report.tables import message_table_lines

SOURCE_COLUMNS = ("SOURCE", "PATH")
COLUMNS = ("NAME", "REVISION", "SUSPENDED", "READY", "MESSAGE")
NOT_RECONCILED = "waiting to be reconciled"
_HASH = lazy_regex(r"\b([0-9a-f]{8})[0-9a-f]{32,120}\b")


class FluxRow(msgspec.Struct, frozen=True):
    """A Flux object in Git and in the cluster."""

    desired: JsonObject
    """The object as in Git."""
    live: JsonObject
    status_message: str = ""
    """Result of the comparison of a unit with the cluster; empty for a source."""
    is_healthy: bool = False

    @property
    def kind(self) -> str:
        return get_text(self.desired, "kind")

    @property
    def namespace(self) -> str:
        return get_text(self.live or self.desired, "metadata", "namespace")

    @property
    def labels(self) -> JsonObject:
        return get_mapping(self.desired, "metadata", "labels")

    @property
    def name(self) -> str:
        return get_text(self.desired, "metadata", "name")


def flux_lines(
    rows: Sequence[FluxRow],
    *,
    all_namespaces: bool,
    wide: bool = False,
    max_width: int | None = None,
) -> Iterator[str]:
    """Yield a table, with namespaces if `all_namespaces`, with sources if `wide`.

    On a narrow terminal a message is placed below its line, unless `wide`.
    """
    columns = ("NAMESPACE", *COLUMNS) if all_namespaces else COLUMNS
    columns = (*columns[:-1], *SOURCE_COLUMNS, columns[-1]) if wide else columns
    cells = [_row_cells(row, wide=wide)[0 if all_namespaces else 1 :] for row in rows]
    yield from message_table_lines(columns, cells, None if wide else max_width)


def _row_cells(row: FluxRow, *, wide: bool) -> tuple[str, ...]:
    ready, message = _ready_status(row)
    format_hash = str if wide else _shorten_hashes
    return (
        row.namespace,
        row.name,
        format_hash(_revision(row.live)),
        str(bool(get_value(row.live or row.desired, "spec", "suspend"))),
        ready,
        *(_source_cells(row.desired) if wide else ()),
        format_hash(message),
    )


def _source_cells(desired: JsonObject) -> tuple[str, str]:
    """Return the source of a unit and the path or chart in it; for a source, its URL."""
    spec = get_mapping(desired, "spec")
    chart = get_mapping(spec, "chart", "spec")
    source_ref = (
        get_mapping(spec, "sourceRef")
        or get_mapping(chart, "sourceRef")
        or get_mapping(spec, "chartRef")
    )
    source = (
        f"{get_text(source_ref, 'kind')}/{get_text(source_ref, 'name')}"
        if source_ref
        else get_text(spec, "url")
    )
    path = get_text(spec, "path") or get_text(chart, "chart") or get_text(spec, "chart")
    return source or "-", path or "-"


def _revision(live: JsonObject) -> str:
    status = get_mapping(live, "status")
    applied = get_text(status, "lastAppliedRevision") or get_text(status, "artifact", "revision")
    history = get_mappings(status, "history")
    return applied or (get_text(history[0], "chartVersion") if history else "")


def _ready_status(row: FluxRow) -> tuple[str, str]:
    """Return the Ready condition; without one, the result of the comparison."""
    for condition in get_mappings(row.live, "status", "conditions"):
        if condition.get("type") == "Ready":
            return get_text(condition, "status"), get_text(condition, "message")
    return (
        (str(row.is_healthy), row.status_message)
        if row.status_message
        else ("False", NOT_RECONCILED)
    )


def _shorten_hashes(text: str) -> str:
    return _HASH.sub(r"\1", text)


def flux_document(row: FluxRow) -> JsonObject:
    """Return the object in the form of its manifest, without values."""
    ready, message = _ready_status(row)
    return {
        "apiVersion": get_text(row.desired, "apiVersion"),
        "kind": row.kind,
        "metadata": metadata_document(row.desired),
        "spec": {"suspend": bool(get_value(row.live or row.desired, "spec", "suspend"))},
        "status": {
            "conditions": [*get_mappings(row.live, "status", "conditions")],
            "lastAppliedRevision": _revision(row.live),
        },
        "ready": ready,
        "message": message,
    }
