"""Units at fault, and what waits for them: what a rollout leaves out when the others shall go on.

A unit waits for those that it depends on, for whoever brings it, and for what the same parent
brings in an earlier wave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from tidegate.flows.discover import Family, Member
from tidegate.flows.rendering import Unrendered
from tidegate.flows.units import own_waves
from tidegate.model.finding import Finding, Severity
from tidegate.model.unit import Unit, UnitId

Waves: TypeAlias = Mapping[UnitId, int]


def without_faults(
    families: Iterable[Family], findings: Collection[Finding]
) -> tuple[tuple[Family, ...], tuple[Finding, ...]]:
    """The families without units at fault and what waits for them; of the latter it is told."""
    families = tuple(families)
    members = [member for family in families for member in family.members]
    faults = {*_unrendered(members), *_accused(members, findings)}
    waiting = _waiting(members, faults)
    out = faults | waiting.keys()
    kept = (
        replace(one, members=tuple(each for each in one.members if each.unit.id not in out))
        for one in families
    )
    told = tuple(_told(one, waiting[one.unit.id]) for one in members if one.unit.id in waiting)
    return tuple(one for one in kept if one.members), told


def _unrendered(members: Iterable[Member]) -> Iterator[UnitId]:
    """What the user points at is not among them: that is an error."""
    return (
        one.unit.id for one in members if one.unit.id.kind and isinstance(one.rendered, Unrendered)
    )


def _accused(members: Iterable[Member], findings: Iterable[Finding]) -> Iterator[UnitId]:
    """Those in whose text an error stands: the last that begins before it in its file."""
    begins: dict[str, list[tuple[int, UnitId]]] = {}
    for unit in (one.unit for one in members):
        if unit.where is not None and unit.where.line:
            begins.setdefault(unit.where.name, []).append((unit.where.line, unit.id))
    for place in (one.where for one in findings if one.severity is Severity.ERROR):
        before = (
            [one for one in begins.get(place.name, ()) if one[0] <= place.line] if place else []
        )
        if before:
            yield max(before)[1]


def _waiting(members: Collection[Member], faults: Iterable[UnitId]) -> dict[UnitId, str]:
    """By unit, why it cannot begin without those at fault; what waits for it is out as well."""
    units = {one.unit.id: one.unit for one in members}
    waves = own_waves(members)
    out: dict[UnitId, str] = dict.fromkeys(faults, "")
    grows = True
    while grows:
        first = _first_waves((units[name] for name in out), waves)
        rest = (unit for name, unit in units.items() if name not in out)
        found = {unit.id: why for unit in rest if (why := _reason(unit, out, first, waves))}
        out |= found
        grows = bool(found)
    return {name: why for name, why in out.items() if why}


def _first_waves(out: Iterable[Unit], waves: Waves) -> dict[UnitId, tuple[int, UnitId]]:
    """By parent, the first wave in which something is out."""
    found: dict[UnitId, tuple[int, UnitId]] = {}
    for unit in out:
        if unit.parent is not None and unit.id in waves:
            spot = (waves[unit.id], unit.id)
            found[unit.parent] = min(spot, found.get(unit.parent, spot))
    return found


def _reason(
    unit: Unit,
    out: Collection[UnitId],
    first: Mapping[UnitId, tuple[int, UnitId]],
    waves: Waves,
) -> str:
    for one in unit.dependencies:
        if one.unit in out:
            return f"it depends on `{one.unit}`, which is left out"
    if unit.parent in out:
        return f"`{unit.parent}`, which brings it, is left out"
    if unit.parent is not None and unit.parent in first:
        wave, before = first[unit.parent]
        if waves.get(unit.id, wave) > wave:
            return f"`{before}` comes before it in `{unit.parent}`, and is left out"
    return ""


def _told(member: Member, why: str) -> Finding:
    return Finding(
        code="units.left",
        severity=Severity.WARNING,
        sentence=f"nothing is done to `{member.unit.id}`",
        where=member.unit.where,
        why=why,
        fix="mend the unit at fault",
    )
