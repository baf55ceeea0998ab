"""Levels of units: how many dependencies are between a unit and one without dependencies."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.units.unit import Unit, UnitId


def unit_levels(units: Iterable[Unit]) -> dict[UnitId, int]:
    """Return the levels of units that depend on others or are depended on; the first level is 1.

    Units of a cycle have no level.
    """
    after = {
        unit.id: [
            dependency.unit for dependency in unit.dependencies if dependency.unit is not None
        ]
        for unit in units
    }
    involved = {name for name, others in after.items() if others}
    involved |= {other for others in after.values() for other in others if other in after}
    levels: dict[UnitId, int] = {}
    pending = [name for name in after if name in involved]
    while pending:
        ready = [
            name
            for name in pending
            if all(other in levels or other not in after for other in after[name])
        ]
        for name in ready:
            known = [levels[other] for other in after[name] if other in levels]
            levels[name] = 1 + max(known, default=0)
        if not ready:
            break  # the rest is a cycle, which is reported elsewhere
        pending = [name for name in pending if name not in levels]
    return levels
