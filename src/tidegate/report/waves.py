"""The inventory of an order: phases, waves and levels of units, waves of objects, and coverage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.model.finding import Finding
from tidegate.model.objects import Json, Ref
from tidegate.model.unit import UnitId
from tidegate.report.findings import finding_document
from tidegate.report.places import seen_text
from tidegate.report.rollout.names import PHASES, fold, name_from
from tidegate.report.rollout.rows import cells
from tidegate.report.units import short_place

SCHEMA = "tidegate.dev/waves/v1"
GAP = "  "
MOST_NAMED = 4


class PhaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a set: what its label says, how many of it at once, and the units in it."""

    made_by: str
    step: int
    phase: str
    limit: int | None
    units: tuple[UnitId, ...]


class WaveRow(msgspec.Struct, frozen=True, kw_only=True):
    """The units that one unit brings in one wave."""

    parent: UnitId | None
    wave: int
    units: tuple[UnitId, ...]


class LevelRow(msgspec.Struct, frozen=True, kw_only=True):
    """Units that depend on those of the levels before, and on no others."""

    level: int
    units: tuple[UnitId, ...]


class PlacedObject(msgspec.Struct, frozen=True):
    """An object, its place, and whether it says itself in which wave it is.

    One that `is_made` stands in no file: a namespace that is created for its unit.
    """

    ref: Ref
    where: str
    is_marked: bool
    is_made: bool = False


class UnitWave(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one unit that come in one phase and wave."""

    phase: str
    wave: int
    objects: tuple[PlacedObject, ...]


class WavesOfUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit, what orders it, and its waves. Of some not all objects are known."""

    unit: UnitId
    source: str
    where: str
    order: str
    waves: tuple[UnitWave, ...]
    is_whole: bool = True

    @property
    def objects(self) -> list[PlacedObject]:
        """Those that stand in files."""
        return [one for wave in self.waves for one in wave.objects if not one.is_made]

    @property
    def marked(self) -> int:
        return sum(one.is_marked for one in self.objects)


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    phases: tuple[PhaseRow, ...] = ()
    waves: tuple[WaveRow, ...] = ()
    levels: tuple[LevelRow, ...] = ()
    units: tuple[WavesOfUnit, ...] = ()


def waves_lines(found: Inventory, room: int | None = None) -> Iterator[str]:
    """Tables for what there is: phases, waves of units, levels, waves of objects, coverage."""
    tables = [
        (("PHASE", "STEP", "UNITS"), [_phase_cells(one) for one in found.phases]),
        (("WAVE", "UNITS", "BROUGHT BY"), [_wave_cells(one) for one in found.waves]),
        (("LEVEL", "UNITS"), [_level_cells(one) for one in found.levels]),
        (("UNIT", "WAVE", "OBJECTS"), list(_object_cells(found.units))),
        (("UNIT", "SOURCE", "OBJECTS", "WITH A WAVE", "WITHOUT"), _coverage(found.units)),
    ]
    is_first = True
    for heads, rows in tables:
        if rows:
            if not is_first:
                yield ""
            is_first = False
            yield from _table(heads, rows, room)
    if is_first:
        yield "there are no units here"


def _phase_cells(one: PhaseRow) -> tuple[str, ...]:
    step = str(one.step) if one.step else "none"
    most = f" (at most {one.limit} at once)" if one.limit is not None else ""
    return (one.phase or "-", f"{step}{most}", ", ".join(unit.name for unit in one.units))


def _wave_cells(one: WaveRow) -> tuple[str, ...]:
    parent = one.parent
    names = (name_from(parent, unit) if parent else str(unit) for unit in one.units)
    return (str(one.wave), ", ".join(names), str(parent) if parent else "-")


def _level_cells(one: LevelRow) -> tuple[str, ...]:
    return (str(one.level), ", ".join(map(str, one.units)))


def _object_cells(units: Iterable[WavesOfUnit]) -> Iterator[tuple[str, ...]]:
    for unit in units:
        name = str(unit.unit)
        for wave in unit.waves:
            told = [str(one.ref) for one in wave.objects]
            yield (name, _wave_name(wave, unit.order), fold(told, len(told), MOST_NAMED))
            name = ""


def _wave_name(wave: UnitWave, order: str) -> str:
    """Waves are Argo CD's; Helm knows hooks by their weights, and Flux neither."""
    phase = PHASES.get(wave.phase, wave.phase)
    if order == "stages" or (order == "helm" and not phase):
        return "-"
    if order == "helm":
        weight = f" {wave.wave}" if wave.wave else ""
        return f"{'pre' if phase == PHASES['presync'] else 'post'}-hook{weight}"
    return f"{phase} {wave.wave}".strip() if phase else str(wave.wave)


def _coverage(units: Iterable[WavesOfUnit]) -> list[tuple[str, ...]]:
    """Only where waves order objects: elsewhere nobody reads them."""
    rows: list[tuple[str, ...]] = []
    for unit in units:
        total = len(unit.objects)
        if unit.order != "waves" or not total:
            continue
        kinds = dict.fromkeys(one.ref.kind.name for one in unit.objects if not one.is_marked)
        share = f"{unit.marked} ({100 * unit.marked // total} %)"
        rest = fold(kinds, len(kinds), MOST_NAMED) or "-"
        known = "" if unit.is_whole else " known"
        rows.append(
            (str(unit.unit), _short_sources(unit.source) or "-", f"{total}{known}", share, rest)
        )
    return rows


def _short_sources(places: str) -> str:
    """Each of them in short; an Application may have several."""
    return ", ".join(map(short_place, places.split(", ")))


def _table(
    heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], room: int | None
) -> Iterator[str]:
    """Aligned columns; the last one is cut where there is no room."""
    table = [heads, *rows]
    widths = [max(cells(row[at]) for row in table) for at in range(len(heads))]
    for row in table:
        pairs = zip(row, widths, strict=True)
        line = GAP.join(one + " " * (width - cells(one)) for one, width in pairs).rstrip()
        yield line if room is None or cells(line) <= room else line[: max(0, room - 1)] + "…"


def waves_document(found: Inventory, findings: Iterable[Finding]) -> dict[str, Json]:
    """One document for programs."""
    return {
        "schema": SCHEMA,
        "phases": [_phase(one) for one in found.phases],
        "waves": [_wave(one) for one in found.waves],
        "levels": [
            {"level": one.level, "units": [str(unit) for unit in one.units]} for one in found.levels
        ],
        "units": [_unit(one) for one in found.units],
        "findings": [finding_document(one) for one in findings],
    }


def _phase(one: PhaseRow) -> Json:
    return {
        "phase": one.phase or None,
        "step": one.step or None,
        "set": one.made_by,
        "maxUpdate": one.limit,
        "components": [unit.name for unit in one.units],
        "units": [str(unit) for unit in one.units],
    }


def _wave(one: WaveRow) -> Json:
    return {
        "wave": one.wave,
        "parent": str(one.parent) if one.parent else None,
        "units": [str(unit) for unit in one.units],
    }


def _unit(one: WavesOfUnit) -> Json:
    total = len(one.objects)
    return {
        "unit": str(one.unit),
        "source": one.source,
        "place": seen_text(one.where) or None,
        "order": one.order,
        "whole": one.is_whole,
        "objects": total,
        "withWave": one.marked,
        "coverage": one.marked / total if total and one.order == "waves" else None,
        "waves": [
            {
                "phase": wave.phase,
                "wave": wave.wave,
                "objects": [_object(placed) for placed in wave.objects],
            }
            for wave in one.waves
        ],
    }


def _object(one: PlacedObject) -> Json:
    kind = one.ref.kind
    return {
        "group": kind.group,
        "kind": kind.name,
        "namespace": one.ref.namespace,
        "name": one.ref.name,
        "place": seen_text(one.where) or None,
        "withWave": one.is_marked,
        "made": one.is_made,
    }
