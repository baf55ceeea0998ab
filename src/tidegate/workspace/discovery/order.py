"""Order in which a parent deploys units: by waves, or by the steps of an ApplicationSet.

Units that are selected without their parents keep this order among themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from tidegate.dialect.argo.waves import live_wave
from tidegate.documents import Document
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.units.policy import Order
from tidegate.model.units.unit import Dependency, Unit, UnitId
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree


def child_waves(parent: RenderedUnit | None) -> dict[tuple[str, str], int]:
    """Return the wave of each object of a parent, by kind and name; none without waves."""
    if parent is None or parent.unit.policy.order is not Order.WAVES:
        return {}
    return document_waves(parent.documents)


def document_waves(documents: Iterable[Document]) -> dict[tuple[str, str], int]:
    return {
        (get_text(document.body, "kind"), get_text(document.body, "metadata", "name")): live_wave(
            document.body
        )
        for document in documents
    }


def sort_key(unit: Unit, waves: dict[tuple[str, str], int]) -> tuple[int, float]:
    """Return the position of a unit among its siblings; units in no step of their set are last."""
    step = unit.rolling_sync_step.number or math.inf if unit.rolling_sync_step else 0
    return waves.get((unit.id.kind, unit.id.name), 0), step


def narrow_tree(unit_tree: UnitTree, selected: Sequence[RenderedUnit]) -> UnitTree:
    """Return the tree with some of its members.

    Members whose parents are left out wait for each other as their parents ordered them.
    """
    collector = _DependencyCollector(unit_tree, frozenset(member.unit.id for member in selected))
    for member in unit_tree.members:
        if member.unit.parent not in unit_tree.unit_ids:
            collector.walk(member)
    dependencies = collector.dependencies
    return replace(
        unit_tree,
        members=tuple(
            _with_dependencies(member, dependencies.get(member.unit.id, [])) for member in selected
        ),
    )


class _DependencyCollector:
    """Collector of the units that the first selected units must wait for."""

    def __init__(self, unit_tree: UnitTree, selected: frozenset[UnitId]) -> None:
        self._selected = selected
        self._children: dict[UnitId | None, list[RenderedUnit]] = {}
        for member in unit_tree.members:
            self._children.setdefault(member.unit.parent, []).append(member)
        self.dependencies: dict[UnitId, list[UnitId]] = {}

    def walk(self, member: RenderedUnit) -> list[UnitId]:
        """Return the first selected units of a member and its descendants."""
        if member.unit.id in self._selected:
            return [member.unit.id]
        positions: dict[tuple[int, float], list[UnitId]] = {}
        waves = child_waves(member)
        for child in self._children.get(member.unit.id, []):
            positions.setdefault(sort_key(child.unit, waves), []).extend(self.walk(child))
        for earlier, later in pairwise(
            sorted(position for position, unit_ids in positions.items() if unit_ids)
        ):
            for unit_id in positions[later]:
                self.dependencies.setdefault(unit_id, []).extend(positions[earlier])
        return [unit_id for unit_ids in positions.values() for unit_id in unit_ids]


def _with_dependencies(member: RenderedUnit, unit_ids: Sequence[UnitId]) -> RenderedUnit:
    unit = member.unit
    if not unit_ids:
        return member
    added = (
        Dependency(unit=unit_id, location=unit.location, is_tidegate_annotation=True)
        for unit_id in unit_ids
    )
    updated = msgspec.structs.replace(unit, dependencies=(*unit.dependencies, *added))
    return replace(member, unit=updated)
