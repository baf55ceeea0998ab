"""Objects as a Table: what kubectl asks for, and prints as it comes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tidegate.apiserver.catalogue import Body, Column, Serving
from tidegate.apiserver.printing.cells import AGE, CREATED, NAME, Printer, since
from tidegate.apiserver.printing.core import CORE
from tidegate.apiserver.printing.others import OTHERS
from tidegate.apiserver.printing.pods import POD
from tidegate.apiserver.printing.workloads import WORKLOADS
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind
from tidegate.model.patterns import late
from tidegate.model.reading import mapping

TABLE = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
PRINTERS: dict[tuple[str, str], tuple[Printer, ...]] = {
    ("", "Pod"): POD,
    **WORKLOADS,
    **CORE,
    **OTHERS,
}
BARE: tuple[Printer, ...] = (NAME, AGE)
"""Of a custom kind that asks for no columns."""
_STEP = late(
    r"""\.?(?P<key>(?:[^.\[\]\\]|\\.)+)
    |\[(?P<place>\d+|\*)\]
    |\[['"](?P<quoted>[^'"]+)['"]\]
    |\[\?\(@\.(?P<field>[\w.]+)\s*==\s*['"](?P<value>[^'"]*)['"]\)\]""",
    re.VERBOSE,
)


def printers_of(kind: Kind, serving: Serving) -> tuple[Printer, ...]:
    """The columns of a kind, as its definition or Kubernetes has them."""
    asked = serving.columns.get(kind)
    if asked is None:
        return PRINTERS.get((kind.group, kind.name), CREATED)
    return (NAME, *map(_custom, asked)) if asked else BARE


def table(
    bodies: Sequence[Body], printers: Sequence[Printer], now: Ms, *, whole: bool, heads: bool
) -> Body:
    """`whole`: with the objects themselves beside their cells; `heads`: with the columns."""
    columns: list[Json] = [
        {
            "name": one.title,
            "type": one.type,
            "format": one.format,
            "description": "",
            "priority": int(one.wide),
        }
        for one in printers
    ]
    rows: list[Json] = [
        {
            "cells": [one.cell(body, now) for one in printers],
            "object": body if whole else partial(body),
        }
        for body in bodies
    ]
    shown: Json = columns if heads else None
    return {**TABLE, "metadata": {}, "columnDefinitions": shown, "rows": rows}


def partial(body: Body) -> Body:
    """An object of which only the metadata is told."""
    head: Body = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {**head, "metadata": mapping(body, "metadata")}


def _custom(column: Column) -> Printer:
    def cell(body: Body, now: Ms) -> Json:
        found = [*find_all(body, column.path)]
        if not found:
            return None
        if column.type == "date":
            return since(found[0], now)
        return (
            found[0] if len(found) == 1 and not isinstance(found[0], dict | list) else _shown(found)
        )

    is_wide = column.priority > 0
    return Printer(column.name, cell, column.type, wide=is_wide, format=column.format)


def _shown(found: list[Json]) -> Json:
    return ",".join(map(str, found))


def find_all(body: Json, path: str) -> Iterator[Json]:
    """What a simple JSON path leads to."""
    found: list[Json] = [body]
    for step in _STEP.finditer(path.strip("{}")):
        found = [one for value in found for one in _taken(value, step)]
    yield from (one for one in found if one is not None)


def _taken(value: Json, step: re.Match[str]) -> Iterator[Json]:
    key = step["quoted"] or (step["key"] and re.sub(r"\\(.)", r"\1", step["key"]))
    if key:
        yield value.get(key) if isinstance(value, dict) else None
    elif isinstance(value, list) and step["place"]:
        yield from value if step["place"] == "*" else value[int(step["place"]) :][:1]
    elif isinstance(value, list):
        for one in value:
            inside: Json = one
            for name in step["field"].split("."):
                inside = inside.get(name) if isinstance(inside, dict) else None
            if str(inside) == step["value"]:
                yield one
