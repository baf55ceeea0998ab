"""The order in which a parent brings units: by waves, or by the steps of a set.

Units that are looked at without their parents keep it among themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from tidegate.dialect.argo.waves import live_wave
from tidegate.documents import Document
from tidegate.flows.discover.families import Family, Member
from tidegate.model.policy import Order
from tidegate.model.reading import text
from tidegate.model.unit import Dependency, Unit, UnitId


def waves_in(parent: Member | None) -> dict[tuple[str, str], int]:
    """The wave of each object that a parent brings, by kind and name, where waves order it."""
    if parent is None or parent.unit.policy.order is not Order.WAVES:
        return {}
    return waves_of(parent.documents)


def waves_of(documents: Iterable[Document]) -> dict[tuple[str, str], int]:
    return {
        (text(one.body, "kind"), text(one.body, "metadata", "name")): live_wave(one.body)
        for one in documents
    }


def turn_of(unit: Unit, waves: dict[tuple[str, str], int]) -> tuple[int, float]:
    """When it comes among those of its parent; those in no step of a set come last."""
    step = unit.rollout.number or math.inf if unit.rollout else 0
    return waves.get((unit.id.kind, unit.id.name), 0), step


def narrowed(family: Family, kept: Sequence[Member]) -> Family:
    """Some members of a family; those whose parents are left out wait as these had them wait."""
    narrowing = _Narrowing(family, frozenset(one.unit.id for one in kept))
    for one in family.members:
        if one.unit.parent not in family.ids:
            narrowing.walk(one)
    waits = narrowing.waits
    return replace(family, members=tuple(_waiting(one, waits.get(one.unit.id, [])) for one in kept))


class _Narrowing:
    """What is kept of a family, and for whom each of its first units waits."""

    def __init__(self, family: Family, kept: frozenset[UnitId]) -> None:
        self._kept = kept
        self._children: dict[UnitId | None, list[Member]] = {}
        for one in family.members:
            self._children.setdefault(one.unit.parent, []).append(one)
        self.waits: dict[UnitId, list[UnitId]] = {}

    def walk(self, one: Member) -> list[UnitId]:
        """The first units of what is kept of it and of what it brings."""
        if one.unit.id in self._kept:
            return [one.unit.id]
        turns: dict[tuple[int, float], list[UnitId]] = {}
        waves = waves_in(one)
        for child in self._children.get(one.unit.id, []):
            turns.setdefault(turn_of(child.unit, waves), []).extend(self.walk(child))
        for early, late in pairwise(sorted(turn for turn, found in turns.items() if found)):
            for name in turns[late]:
                self.waits.setdefault(name, []).extend(turns[early])
        return [name for found in turns.values() for name in found]


def _waiting(member: Member, names: Sequence[UnitId]) -> Member:
    unit = member.unit
    if not names:
        return member
    more = (Dependency(unit=name, where=unit.where, ours=True) for name in names)
    waiting = msgspec.structs.replace(unit, dependencies=(*unit.dependencies, *more))
    return replace(member, unit=waiting)
