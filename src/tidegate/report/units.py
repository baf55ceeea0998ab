"""Units as a table and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.model.display import count_noun
from tidegate.model.display_paths import location_text
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import Json
from tidegate.model.rollouts.names import relative_unit_name
from tidegate.model.views.units import UnitRow
from tidegate.report.findings import finding_document
from tidegate.report.tables import table_lines

COLUMNS = ("UNIT", "SOURCE", "TO", "AFTER", "STATE", "LOCATION")
OPTIONAL_COLUMNS = ("LOCATION", "SOURCE", "TO")
"""Columns that are dropped first on a narrow terminal."""


def unit_lines(rows: Iterable[UnitRow], max_width: int | None = None) -> Iterator[str]:
    """Yield a table with children below their parents; wide tables lose columns."""
    yield from table_lines(COLUMNS, map(_unit_cells, rows), max_width, OPTIONAL_COLUMNS)


def _unit_cells(row: UnitRow) -> tuple[str, ...]:
    unit = row.unit
    return (
        "  " * row.depth + str(unit.id),
        ", ".join(short_source(source.canonical_location) for source in unit.sources) or "-",
        "/".join(part for part in (unit.destination.cluster, unit.destination.namespace) if part)
        or "-",
        _after_text(row) or "-",
        _state_text(row),
        location_text(unit.location) or "-",
    )


def _state_text(row: UnitRow) -> str:
    flags = ["invalid"] * row.is_faulty + ["suspended"] * row.unit.is_suspended
    counts = [] if row.object_count is None else [count_noun(row.object_count, "object")]
    return ", ".join((*counts, *flags)) or "-"


def short_source(source: str) -> str:
    """Return the last part of an address, and the path in it."""
    address, separator, path = source.rpartition("//")
    name = address.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return f"{name}//{path}" if separator and name else source


def _after_text(row: UnitRow) -> str:
    wave_texts = [f"wave {row.wave}"] if row.wave is not None else []
    unit_id, dependencies = (
        row.unit.id,
        [dependency.unit for dependency in row.unit.dependencies if dependency.unit],
    )
    step = row.unit.rolling_sync_step
    step_texts = [f"step {step.number}" if step.number else "no step"] if step else []
    return ", ".join(
        [
            *wave_texts,
            *step_texts,
            *(relative_unit_name(unit_id, dependency) for dependency in dependencies),
        ]
    )


def units_document(rows: Iterable[UnitRow], findings: Iterable[Finding]) -> dict[str, Json]:
    """Return units and findings as a JSON document."""
    return {
        "units": [_unit_document(row) for row in rows],
        "findings": [finding_document(finding) for finding in findings],
    }


def _unit_document(row: UnitRow) -> dict[str, Json]:
    unit = row.unit
    return {
        "id": str(unit.id),
        "kind": unit.id.kind,
        "namespace": unit.id.namespace,
        "name": unit.id.name,
        "parent": str(unit.parent) if unit.parent else None,
        "root": unit.parent is None,
        "location": location_text(unit.location) or None,
        "sources": [
            {"url": source.canonical_location, "path": source.path} for source in unit.sources
        ],
        "destination": {
            "cluster": unit.destination.cluster,
            "namespace": unit.destination.namespace,
        },
        "wave": row.wave,
        "set": unit.generated_by or None,
        "step": unit.rolling_sync_step.number if unit.rolling_sync_step else None,
        "dependsOn": [str(dependency.unit) for dependency in unit.dependencies if dependency.unit],
        "suspended": unit.is_suspended,
        "objects": row.object_count,
    }
