"""The units of a repository, in order, for people to look at."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tidegate.dialect.argo.waves import live_wave
from tidegate.dialect.tracking import SET
from tidegate.documents import Document
from tidegate.flows.discover import Family, Member
from tidegate.flows.discover.families import refuse_unrendered
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.model.policy import Order
from tidegate.model.reading import text
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
        waves = _waves(members.get(parent) if parent else None)
        if parent is None and family.own is not None:
            waves = {name: wave for name, wave in _waves_of((family.own,)).items() if wave}
        mine = children.get(parent, [])
        for one in sorted(mine, key=lambda one: (waves.get(_key(one.unit), 0), _step(one.unit))):
            wave = waves.get(_key(one.unit))
            objects = len(one.documents) if counts and isinstance(one.rendered, Rendered) else None
            is_faulty = isinstance(one.rendered, Unrendered) or not _has_text(one.unit)
            rows.append(UnitRow(one.unit, wave, depth, objects, is_faulty))
            walk(one.unit.id, depth + 1)

    walk(None, 0)
    return rows


def _waves(parent: Member | None) -> dict[tuple[str, str], int]:
    """The wave of each object that a parent brings, where waves order it."""
    if parent is None or parent.unit.policy.order is not Order.WAVES:
        return {}
    return _waves_of(parent.documents)


def _waves_of(documents: Iterable[Document]) -> dict[tuple[str, str], int]:
    return {_name(one): live_wave(one.body) for one in documents}


def _name(document: Document) -> tuple[str, str]:
    return (text(document.body, "kind"), text(document.body, "metadata", "name"))


def _step(unit: Unit) -> float:
    """Those in no step come last."""
    return unit.rollout.number or math.inf if unit.rollout else 0


def _key(unit: Unit) -> tuple[str, str]:
    """The object by which it is brought."""
    return unit.id.kind, unit.id.name


def _has_text(unit: Unit) -> bool:
    """A set needs no source: it generates what it deploys."""
    return bool(unit.sources) or unit.id.kind == SET
