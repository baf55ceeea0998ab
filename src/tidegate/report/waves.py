"""Deployment order of a repository: phases, waves, levels and coverage, as tables and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.model.display import join_limited
from tidegate.model.display_paths import location_text
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import Json
from tidegate.model.rollouts.names import PHASE_NAMES, relative_unit_name
from tidegate.model.views.waves import (
    LevelRow,
    ObjectWave,
    PhaseRow,
    UnitWaves,
    WaveInventory,
    WaveObject,
    WaveRow,
)
from tidegate.report.findings import finding_document
from tidegate.report.styled_text import text_width
from tidegate.report.units import short_source

SCHEMA = "tidegate.dev/waves/v1"
GAP = "  "
MAX_NAMED = 4


def waves_lines(inventory: WaveInventory, max_width: int | None = None) -> Iterator[str]:
    """Yield tables: phases, waves of units, levels, waves of objects, coverage."""
    tables = [
        (("PHASE", "STEP", "UNITS"), [_phase_cells(row) for row in inventory.phases]),
        (("WAVE", "UNITS", "PARENT"), [_wave_cells(row) for row in inventory.waves]),
        (("LEVEL", "UNITS"), [_level_cells(row) for row in inventory.levels]),
        (("UNIT", "WAVE", "OBJECTS"), list(_object_cells(inventory.units))),
        (("UNIT", "SOURCE", "OBJECTS", "WITH A WAVE", "WITHOUT"), _coverage_rows(inventory.units)),
    ]
    is_first = True
    for headers, rows in tables:
        if rows:
            if not is_first:
                yield ""
            is_first = False
            yield from _aligned_lines(headers, rows, max_width)
    if is_first:
        yield "no units found"


def _phase_cells(row: PhaseRow) -> tuple[str, ...]:
    step = str(row.step) if row.step else "none"
    limit_text = f" (at most {row.max_update} at once)" if row.max_update is not None else ""
    return (row.phase or "-", f"{step}{limit_text}", ", ".join(unit.name for unit in row.units))


def _wave_cells(row: WaveRow) -> tuple[str, ...]:
    parent = row.parent
    names = (relative_unit_name(parent, unit) if parent else str(unit) for unit in row.units)
    return (str(row.wave), ", ".join(names), str(parent) if parent else "-")


def _level_cells(row: LevelRow) -> tuple[str, ...]:
    return (str(row.level), ", ".join(map(str, row.units)))


def _object_cells(units: Iterable[UnitWaves]) -> Iterator[tuple[str, ...]]:
    for unit in units:
        name = str(unit.unit)
        for wave in unit.waves:
            names = [str(item.ref) for item in wave.objects]
            yield (name, _wave_name(wave, unit.order), join_limited(names, MAX_NAMED))
            name = ""


def _wave_name(wave: ObjectWave, order: str) -> str:
    """Return the name of a wave: Argo CD has waves, Helm has hook weights, Flux has neither."""
    phase = PHASE_NAMES.get(wave.phase, wave.phase)
    if order == "stages" or (order == "helm" and not phase):
        return "-"
    if order == "helm":
        weight = f" {wave.wave}" if wave.wave else ""
        return f"{'pre' if phase == PHASE_NAMES['presync'] else 'post'}-hook{weight}"
    return f"{phase} {wave.wave}".strip() if phase else str(wave.wave)


def _coverage_rows(units: Iterable[UnitWaves]) -> list[tuple[str, ...]]:
    """Return the coverage of units that are ordered by waves."""
    rows: list[tuple[str, ...]] = []
    for unit in units:
        total = len(unit.declared_objects)
        if unit.order != "waves" or not total:
            continue
        kinds = dict.fromkeys(
            item.ref.kind.name for item in unit.declared_objects if not item.has_wave
        )
        share = f"{unit.with_wave_count} ({100 * unit.with_wave_count // total} %)"
        uncovered = join_limited(kinds, MAX_NAMED) or "-"
        suffix = "" if unit.is_complete else " known"
        rows.append(
            (
                str(unit.unit),
                _short_sources(unit.source) or "-",
                f"{total}{suffix}",
                share,
                uncovered,
            )
        )
    return rows


def _short_sources(sources: str) -> str:
    """Return each source in short form; an Application may have several."""
    return ", ".join(map(short_source, sources.split(", ")))


def _aligned_lines(
    headers: tuple[str, ...], rows: Sequence[tuple[str, ...]], max_width: int | None
) -> Iterator[str]:
    """Yield aligned columns; lines are cut at the width."""
    table = [headers, *rows]
    widths = [max(text_width(row[column]) for row in table) for column in range(len(headers))]
    for row in table:
        pairs = zip(row, widths, strict=True)
        line = GAP.join(cell + " " * (width - text_width(cell)) for cell, width in pairs).rstrip()
        yield (
            line
            if max_width is None or text_width(line) <= max_width
            else line[: max(0, max_width - 1)] + "…"
        )


def waves_document(inventory: WaveInventory, findings: Iterable[Finding]) -> dict[str, Json]:
    """Return the deployment order as a JSON document."""
    return {
        "schema": SCHEMA,
        "phases": [_phase_document(row) for row in inventory.phases],
        "waves": [_wave_document(row) for row in inventory.waves],
        "levels": [
            {"level": row.level, "units": [str(unit) for unit in row.units]}
            for row in inventory.levels
        ],
        "units": [_unit_document(unit_waves) for unit_waves in inventory.units],
        "findings": [finding_document(finding) for finding in findings],
    }


def _phase_document(row: PhaseRow) -> Json:
    return {
        "phase": row.phase or None,
        "step": row.step or None,
        "set": row.appset,
        "maxUpdate": row.max_update,
        "components": [unit.name for unit in row.units],
        "units": [str(unit) for unit in row.units],
    }


def _wave_document(row: WaveRow) -> Json:
    return {
        "wave": row.wave,
        "parent": str(row.parent) if row.parent else None,
        "units": [str(unit) for unit in row.units],
    }


def _unit_document(unit: UnitWaves) -> Json:
    total = len(unit.declared_objects)
    return {
        "unit": str(unit.unit),
        "source": unit.source,
        "location": location_text(unit.location) or None,
        "order": unit.order,
        "whole": unit.is_complete,
        "objects": total,
        "withWave": unit.with_wave_count,
        "coverage": unit.with_wave_count / total if total and unit.order == "waves" else None,
        "waves": [
            {
                "phase": wave.phase,
                "wave": wave.wave,
                "objects": [_object_document(item) for item in wave.objects],
            }
            for wave in unit.waves
        ],
    }


def _object_document(item: WaveObject) -> Json:
    kind = item.ref.kind
    return {
        "group": kind.group,
        "kind": kind.name,
        "namespace": item.ref.namespace,
        "name": item.ref.name,
        "location": location_text(item.location) or None,
        "withWave": item.has_wave,
        "made": item.is_generated,
    }
