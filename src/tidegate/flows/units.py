"""The units of a repository, in order, for people to look at."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.dialect.tracking import SET
from tidegate.flows.discover import Family, Member
from tidegate.flows.discover.families import refuse_unrendered
from tidegate.flows.discover.order import turn_of, waves_in, waves_of
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.model.unit import Unit, UnitId
from tidegate.report.units import UnitRow


def unit_rows(families: Iterable[Family], *, counts: bool = False) -> list[UnitRow]:
    """Each entry, and below it those that it brings, by their waves; `counts`: their objects.

    Raises where what the user points at could not be rendered.
    """
    families = tuple(families)
    refuse_unrendered(member for family in families for member in family.members)
    return [row for family in families for row in _rows(family, counts=counts)]


def _rows(family: Family, *, counts: bool) -> list[UnitRow]:
    members = {one.unit.id: one for one in family.members}
    children: dict[UnitId | None, list[Member]] = {}
    for one in family.members:
        parent = one.unit.parent if one.unit.parent in members else None
        children.setdefault(parent, []).append(one)
    rows: list[UnitRow] = []

    def walk(parent: UnitId | None, depth: int) -> None:
        waves = waves_in(members.get(parent) if parent else None)
        if parent is None and family.own is not None:
            waves = {name: wave for name, wave in waves_of((family.own,)).items() if wave}
        for one in sorted(children.get(parent, []), key=lambda one: turn_of(one.unit, waves)):
            wave = waves.get((one.unit.id.kind, one.unit.id.name))
            objects = len(one.documents) if counts and isinstance(one.rendered, Rendered) else None
            is_faulty = isinstance(one.rendered, Unrendered) or not _has_text(one.unit)
            rows.append(UnitRow(one.unit, wave, depth, objects, is_faulty))
            walk(one.unit.id, depth + 1)

    walk(None, 0)
    return rows


def _has_text(unit: Unit) -> bool:
    """A set needs no source: it generates what it deploys."""
    return bool(unit.sources) or unit.id.kind == SET
