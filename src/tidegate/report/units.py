"""Units as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.finding import Finding
from tidegate.model.objects import Json
from tidegate.model.unit import Unit
from tidegate.report.findings import finding_document
from tidegate.report.places import seen_text
from tidegate.report.rollout.names import count, name_from
from tidegate.report.tables import table_lines


class UnitRow(msgspec.Struct, frozen=True):
    """A unit, the wave of its own object in its parent, and how many objects it has, if counted.

    One that `is_faulty` could not be rendered.
    """

    unit: Unit
    wave: int | None
    depth: int
    objects: int | None = None
    is_faulty: bool = False


HEADS = ("UNIT", "SOURCE", "TO", "AFTER", "STATE", "PLACE")
SPARED = ("PLACE", "SOURCE", "TO")
"""What is left out where it does not fit, the first of these first."""


def unit_lines(rows: Iterable[UnitRow], room: int | None = None) -> Iterator[str]:
    """A table: children below their parents. With less room than it needs, columns are left out."""
    yield from table_lines(HEADS, map(_cells, rows), room, SPARED)


def _cells(row: UnitRow) -> tuple[str, ...]:
    unit = row.unit
    return (
        "  " * row.depth + str(unit.id),
        ", ".join(short_place(one.place) for one in unit.sources) or "-",
        "/".join(part for part in (unit.destination.cluster, unit.destination.namespace) if part)
        or "-",
        _after(row) or "-",
        _state(row),
        seen_text(unit.where) or "-",
    )


def _state(row: UnitRow) -> str:
    states = ["at fault"] * row.is_faulty + ["suspended"] * row.unit.suspended
    counted = [] if row.objects is None else [count(row.objects, "object")]
    return ", ".join((*counted, *states)) or "-"


def short_place(place: str) -> str:
    """The last part of an address, and the path in it."""
    address, sign, path = place.rpartition("//")
    name = address.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return f"{name}//{path}" if sign and name else place


def _after(row: UnitRow) -> str:
    waves = [f"wave {row.wave}"] if row.wave is not None else []
    own, awaited = row.unit.id, [one.unit for one in row.unit.dependencies if one.unit]
    step = row.unit.rollout
    steps = [f"step {step.number}" if step.number else "no step"] if step else []
    return ", ".join([*waves, *steps, *(name_from(own, one) for one in awaited)])


def units_document(rows: Iterable[UnitRow], findings: Iterable[Finding]) -> dict[str, Json]:
    """One document for programs."""
    return {
        "units": [_unit(row) for row in rows],
        "findings": [finding_document(one) for one in findings],
    }


def _unit(row: UnitRow) -> dict[str, Json]:
    unit = row.unit
    return {
        "id": str(unit.id),
        "kind": unit.id.kind,
        "namespace": unit.id.namespace,
        "name": unit.id.name,
        "parent": str(unit.parent) if unit.parent else None,
        "entry": unit.parent is None,
        "place": seen_text(unit.where) or None,
        "sources": [{"place": one.place, "path": one.path} for one in unit.sources],
        "destination": {
            "cluster": unit.destination.cluster,
            "namespace": unit.destination.namespace,
        },
        "wave": row.wave,
        "set": unit.made_by or None,
        "step": unit.rollout.number if unit.rollout else None,
        "dependsOn": [str(one.unit) for one in unit.dependencies if one.unit],
        "suspended": unit.suspended,
        "objects": row.objects,
    }
