"""Positions of units: their ancestors, and the order that is declared between two of them."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

from tidegate.lint.context import LintContext
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.units.unit import UnitId

WAVE = "argocd.argoproj.io/sync-wave"


class UnitPair(NamedTuple):
    """Two units with the same parent, in which an object and its dependency are deployed."""

    dependent: UnitId
    provider: UnitId


class UnitPositions:
    """Positions of the units of a context; each is computed once."""

    def __init__(self, context: LintContext) -> None:
        self.context = context
        self._ancestors: dict[UnitId, tuple[UnitId, ...]] = {}
        self._dependencies: dict[UnitId, frozenset[UnitId]] = {}

    def ancestors(self, unit: UnitId) -> tuple[UnitId, ...]:
        """Return the parents of a unit, root first, and the unit itself."""
        if unit not in self._ancestors:
            path: dict[UnitId, None] = {}
            current: UnitId | None = unit
            while current is not None and current not in path:
                path[current] = None
                parent = self.context.units.get(current)
                current = parent.parent if parent is not None else None
            self._ancestors[unit] = tuple(path)[::-1]
        return self._ancestors[unit]

    def pair(self, dependent: UnitId, provider: UnitId) -> UnitPair | None:
        """Return the two units with the same parent that contain these units.

        None if one contains the other, or if they have different roots, which may be deployed to
        different clusters.
        """
        dependent_path, provider_path = self.ancestors(dependent), self.ancestors(provider)
        if dependent_path[0] != provider_path[0]:
            return None
        pairs = zip(dependent_path, provider_path, strict=False)
        return next((UnitPair(*pair) for pair in pairs if pair[0] != pair[1]), None)

    def is_ordered(self, dependent: UnitId, provider: UnitId) -> bool:
        """Return whether waves or dependencies of units declare that one comes after the other.

        Other rules report a declared order without effect.
        """
        pair = self.pair(dependent, provider)
        if pair is not None and self.wave(pair.provider) < self.wave(pair.dependent):
            return True
        return self.depends_on(dependent, provider)

    def depends_on(self, dependent: UnitId, provider: UnitId) -> bool:
        """Return whether a unit depends on another one, directly or through other units."""
        return not self._all_dependencies(dependent).isdisjoint(self.ancestors(provider))

    def has_dependents(self, unit: UnitId) -> bool:
        """Return whether any unit depends on a unit, or on one that contains it."""
        return not self._required_units.isdisjoint(self.ancestors(unit))

    @cached_property
    def _required_units(self) -> frozenset[UnitId | None]:
        units = self.context.units.values()
        return frozenset(dependency.unit for unit in units for dependency in unit.dependencies)

    @cached_property
    def roots_with_order(self) -> frozenset[UnitId]:
        """The roots of trees in which some units are ordered."""
        roots: set[UnitId] = set()
        waves: dict[UnitId | None, set[int]] = {}
        for unit in self.context.units.values():
            waves.setdefault(unit.parent, set()).add(self.wave(unit.id))
            if any(dependency.unit is not None for dependency in unit.dependencies):
                roots.add(self.ancestors(unit.id)[0])
        roots |= {
            self.ancestors(parent)[0]
            for parent, values in waves.items()
            if parent is not None and len(values) > 1
        }
        return frozenset(roots)

    def wave(self, unit: UnitId) -> int:
        """Return the wave of a unit resource in its parent."""
        unit_resource = self.context.unit_resources.get(unit)
        annotations = ("metadata", "annotations", WAVE)
        value = get_text(unit_resource.body, *annotations) if unit_resource else ""
        return int(value) if value.lstrip("-").isdecimal() else 0

    def _all_dependencies(self, unit: UnitId) -> frozenset[UnitId]:
        """Return all units that a unit or one of its parents depends on."""
        if unit not in self._dependencies:
            dependencies: set[UnitId] = set()
            pending = [*self.ancestors(unit)]
            for unit_id in pending:  # grows during the loop
                known_unit = self.context.units.get(unit_id)
                declared = known_unit.dependencies if known_unit is not None else ()
                added = {item.unit for item in declared if item.unit is not None} - dependencies
                dependencies |= added
                pending += (ancestor for item in added for ancestor in self.ancestors(item))
            self._dependencies[unit] = frozenset(dependencies)
        return self._dependencies[unit]


@lru_cache(maxsize=2)
def unit_positions(context: LintContext) -> UnitPositions:
    """Return the positions of the units of a context; consecutive rules share them."""
    return UnitPositions(context)
