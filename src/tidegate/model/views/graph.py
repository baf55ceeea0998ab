"""A dependency graph with everything derived from it."""

from __future__ import annotations

import msgspec

from tidegate.model.plans.graph import (
    CriticalStep,
    Cycle,
    Graph,
    UnmetDependency,
    WaitLink,
)
from tidegate.model.units.unit import UnitId


class GraphView(msgspec.Struct, frozen=True, kw_only=True):
    """A graph with the results of its analysis."""

    graph: Graph
    inverted_edges: frozenset[int] = frozenset()
    """Indexes of edges whose consumer is deployed before the producer."""
    cycles: tuple[Cycle, ...] = ()
    missing: tuple[UnmetDependency, ...] = ()
    critical_path: tuple[CriticalStep, ...] | None = None
    """Critical path; None if it was not requested."""
    waits: tuple[WaitLink, ...] | None = None
    """Why one node waits for another; None if it was not requested."""
    selected_units: frozenset[UnitId] | None = None
    """Units to show; None for all."""

    def is_shown(self, unit: UnitId | None) -> bool:
        return self.selected_units is None or unit in self.selected_units
