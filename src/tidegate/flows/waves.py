"""Which units and objects of a repository come in which phase, wave or level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.dialect.argo.waves import WAVE, WEIGHT
from tidegate.flows.entering import Found
from tidegate.flows.graph import plan_families
from tidegate.flows.planning import Planned
from tidegate.flows.reading import Read
from tidegate.flows.session import Session
from tidegate.flows.units import unit_rows
from tidegate.graph.placing import place_of
from tidegate.model.manifest import Manifest, Phase
from tidegate.model.plan import Deed
from tidegate.model.reading import mapping
from tidegate.model.unit import Unit, UnitId
from tidegate.report.waves import (
    Inventory,
    LevelRow,
    PhaseRow,
    PlacedObject,
    UnitWave,
    WaveRow,
    WavesOfUnit,
)

PHASES = {phase: place for place, phase in enumerate(Phase)}


async def take_inventory(
    session: Session, found: Found
) -> tuple[Found, list[tuple[Planned, Inventory]]]:
    """The inventory of each alternative."""
    told = []
    for one in found.apart():
        planned, _ = await plan_families(one.families, session, None)
        told.append((planned, _inventory(one, planned)))
    return found, told


def _inventory(found: Found, planned: Planned) -> Inventory:
    units = [one.unit for one in found.members]
    rows = unit_rows(found.families)
    waves: dict[tuple[UnitId, int], list[UnitId]] = {}
    for row in rows:
        if row.wave is not None and row.unit.parent is not None and row.unit.rollout is None:
            waves.setdefault((row.unit.parent, row.wave), []).append(row.unit.id)
    return Inventory(
        phases=tuple(_phases(units)),
        waves=tuple(
            WaveRow(parent=parent, wave=wave, units=tuple(names))
            for (parent, wave), names in waves.items()
        ),
        levels=tuple(_levels(units)),
        units=tuple(map(_of_unit, planned.read)),
    )


def _phases(units: Iterable[Unit]) -> Iterator[PhaseRow]:
    """Each step of each set; the units that no step takes come last."""
    steps: dict[tuple[str, float, str], list[Unit]] = {}
    for unit in units:
        if unit.rollout is not None:
            number = unit.rollout.number or math.inf
            steps.setdefault((unit.made_by, number, unit.rollout.phase), []).append(unit)
    for (made_by, number, phase), mine in sorted(steps.items()):
        limits = [one.rollout.limit for one in mine if one.rollout is not None]
        yield PhaseRow(
            made_by=made_by,
            step=0 if math.isinf(number) else int(number),
            phase=phase,
            limit=limits[0],
            units=tuple(sorted(one.id for one in mine)),
        )


def _levels(units: Sequence[Unit]) -> Iterator[LevelRow]:
    """How far each unit is from those that depend on nothing, where somebody depends at all."""
    after = {
        one.id: [other.unit for other in one.dependencies if other.unit is not None]
        for one in units
    }
    involved = {name for name, others in after.items() if others}
    involved |= {other for others in after.values() for other in others if other in after}
    levels: dict[UnitId, int] = {}
    pending = [one.id for one in units if one.id in involved]
    while pending:
        ready = [name for name in pending if all(_is_known(o, levels, after) for o in after[name])]
        for name in ready:
            known = [levels[other] for other in after[name] if other in levels]
            levels[name] = 1 + max(known, default=0)
        if not ready:
            break  # those that are left depend on each other, and that is told elsewhere
        pending = [name for name in pending if name not in levels]
    for level in sorted(set(levels.values())):
        names = tuple(name for name, own in levels.items() if own == level)
        yield LevelRow(level=level, units=names)


def _is_known(name: UnitId, levels: dict[UnitId, int], after: dict[UnitId, list[UnitId]]) -> bool:
    return name in levels or name not in after


def _of_unit(read: Read) -> WavesOfUnit:
    unit = read.manifests.unit
    waves: dict[tuple[int, int], list[Manifest]] = {}
    for one in read.manifests.manifests:
        waves.setdefault((PHASES[one.phase], one.wave), []).append(one)
    phases = list(Phase)
    return WavesOfUnit(
        unit=unit.id,
        source=", ".join(one.place for one in unit.sources),
        where=str(unit.where or ""),
        order=unit.policy.order.value,
        waves=tuple(
            UnitWave(
                phase=phases[phase].value,
                wave=wave,
                objects=tuple(_placed(one) for one in mine),
            )
            for (phase, wave), mine in sorted(waves.items())
        ),
        is_whole=read.is_whole,
    )


def _placed(one: Manifest) -> PlacedObject:
    notes = mapping(msgspec.json.decode(one.body), "metadata", "annotations")
    where, is_marked = str(place_of(one.origin) or ""), WAVE in notes or WEIGHT in notes
    return PlacedObject(one.ref, where, is_marked, one.deed is Deed.CREATE)
