"""Objects as a Table, which kubectl requests and prints as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tidegate.apiserver.discovery import PrinterColumn, ServedKinds
from tidegate.apiserver.printers.cells import AGE, CREATED_COLUMNS, NAME, TableColumn, format_age
from tidegate.apiserver.printers.core import CORE_COLUMNS
from tidegate.apiserver.printers.others import OTHER_COLUMNS
from tidegate.apiserver.printers.pods import POD_COLUMNS
from tidegate.apiserver.printers.workloads import WORKLOAD_COLUMNS
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import Ms

TABLE_HEADER = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
BUILTIN_COLUMNS: dict[tuple[str, str], tuple[TableColumn, ...]] = {
    ("", "Pod"): POD_COLUMNS,
    **WORKLOAD_COLUMNS,
    **CORE_COLUMNS,
    **OTHER_COLUMNS,
}
DEFAULT_CUSTOM_COLUMNS: tuple[TableColumn, ...] = (NAME, AGE)
"""Columns of a custom kind that defines none.

Like `serveDefaultColumnsIfEmpty` in `pkg/apiserver/helpers.go` of k8s.io/apiextensions-apiserver
0.36.4.
"""
_PATH_STEP = lazy_regex(
    r"""\.?(?P<key>(?:[^.\[\]\\]|\\.)+)
    |\[(?P<place>\d+|\*)\]
    |\[['"](?P<quoted>[^'"]+)['"]\]
    |\[\?\(@\.(?P<field>[\w.]+)\s*==\s*['"](?P<value>[^'"]*)['"]\)\]""",
    re.VERBOSE,
)


def columns_for_kind(kind: Kind, served_kinds: ServedKinds) -> tuple[TableColumn, ...]:
    """Return the columns of a kind, from its CRD or as Kubernetes defines them."""
    custom_columns = served_kinds.columns.get(kind)
    if custom_columns is None:
        return BUILTIN_COLUMNS.get((kind.group, kind.name), CREATED_COLUMNS)
    return (
        (NAME, *map(_custom_column, custom_columns)) if custom_columns else DEFAULT_CUSTOM_COLUMNS
    )


def build_table(
    bodies: Sequence[JsonObject],
    columns: Sequence[TableColumn],
    now: Ms,
    *,
    include_objects: bool,
    include_columns: bool,
) -> JsonObject:
    """Return a Table.

    `include_objects`: with the complete objects instead of their metadata.
    `include_columns`: with the column definitions.

    Like `asTable` in `pkg/endpoints/handlers/response.go` of k8s.io/apiserver 0.36.4.
    """
    definitions: list[Json] = [
        {
            "name": column.title,
            "type": column.type,
            "format": column.format,
            "description": "",
            "priority": int(column.is_wide),
        }
        for column in columns
    ]
    rows: list[Json] = [
        {
            "cells": [column.cell(body, now) for column in columns],
            "object": body if include_objects else partial_metadata(body),
        }
        for body in bodies
    ]
    shown_definitions: Json = definitions if include_columns else None
    return {**TABLE_HEADER, "metadata": {}, "columnDefinitions": shown_definitions, "rows": rows}


def partial_metadata(body: JsonObject) -> JsonObject:
    """Return the metadata of an object as PartialObjectMetadata.

    Like `asPartialObjectMetadata` in `pkg/endpoints/handlers/response.go` of k8s.io/apiserver
    0.36.4.
    """
    header: JsonObject = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {**header, "metadata": get_mapping(body, "metadata")}


def _custom_column(column: PrinterColumn) -> TableColumn:
    def cell(body: JsonObject, now: Ms) -> Json:
        values = [*find_values(body, column.path)]
        if not values:
            return None
        if column.type == "date":
            return format_age(values[0], now)
        return (
            values[0]
            if len(values) == 1 and not isinstance(values[0], dict | list)
            else _join_values(values)
        )

    is_wide = column.priority > 0
    return TableColumn(column.name, cell, column.type, is_wide=is_wide, format=column.format)


def _join_values(values: list[Json]) -> Json:
    return ",".join(map(str, values))


def find_values(body: Json, path: str) -> Iterator[Json]:
    """Yield the values at a simple JSONPath."""
    values: list[Json] = [body]
    for step in _PATH_STEP.finditer(path.strip("{}")):
        values = [child for value in values for child in _follow_step(value, step)]
    yield from (child for child in values if child is not None)


def _follow_step(value: Json, step: re.Match[str]) -> Iterator[Json]:
    key = step["quoted"] or (step["key"] and re.sub(r"\\(.)", r"\1", step["key"]))
    if key:
        yield value.get(key) if isinstance(value, dict) else None
    elif isinstance(value, list) and step["place"]:
        yield from value if step["place"] == "*" else value[int(step["place"]) :][:1]
    elif isinstance(value, list):
        for item in value:
            field_value: Json = item
            for name in step["field"].split("."):
                field_value = field_value.get(name) if isinstance(field_value, dict) else None
            if str(field_value) == step["value"]:
                yield item
