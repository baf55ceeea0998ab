"""The reach of a change: the units that differ, those that they affect, the critical path."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.graph.comparison.sides import OrderSide, dependency_keys
from tidegate.graph.paths import DelayLookup, DurationLookup, find_critical_path
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import EdgeKind, GraphEdge
from tidegate.model.rollouts.names import step_name
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.model.views.order_diff import AffectedUnits, CriticalPathChange, CriticalPathEnd


class Times(msgspec.Struct, frozen=True):
    """The assumed times of one side."""

    duration_of: DurationLookup
    delay_after: DelayLookup


def find_changed_units(base: OrderSide, head: OrderSide) -> tuple[UnitId, ...]:
    """Return the units of the head whose objects, policy or dependencies differ."""
    digests = {unit.id: unit.digest for unit in base.plan.units}
    changed: list[UnitId] = []
    for planned in head.plan.units:
        before, after = base.units.get(planned.id), head.units.get(planned.id)
        is_same = (
            digests.get(planned.id) == planned.digest
            and before is not None
            and after is not None
            and before.policy == after.policy
            and before.is_suspended == after.is_suspended
            and dependency_keys(before) == dependency_keys(after)
        )
        if not is_same:
            changed.append(planned.id)
    return tuple(changed)


def find_affected_units(
    base: OrderSide, head: OrderSide, changed: Iterable[UnitId]
) -> tuple[AffectedUnits, ...]:
    """Return the units that wait for changed or removed ones, or need them, transitively.

    A unit counts if it does so on either side: one that does not wait any more starts earlier.
    """
    changed = tuple(changed)
    removed = (unit for unit in base.units if unit not in head.units)
    reached = _reached_units(head, changed) | _reached_units(base, (*changed, *removed))
    clusters: dict[str, list[UnitId]] = {}
    for unit in sorted(reached - set(changed)):
        if unit in head.units and unit in base.units:
            clusters.setdefault(head.units[unit].destination.cluster, []).append(unit)
    return tuple(
        AffectedUnits(cluster=cluster, units=tuple(units))
        for cluster, units in sorted(clusters.items())
    )


def _reached_units(side: OrderSide, units: Iterable[UnitId]) -> set[UnitId]:
    """Return the units that wait for these on one side, or need them, transitively."""
    pending = list(units)
    reached: set[UnitId] = set(pending)
    needed_by = _dependent_units(side)
    while pending:
        unit = pending.pop()
        waiting = side.units_after([side.last_steps[unit]]) if unit in side.last_steps else ()
        created = _descendants(side, unit)
        for other in (*waiting, *needed_by.get(unit, ())):
            if other not in created and other not in reached:
                reached.add(other)
                pending.append(other)
    return reached


def _dependent_units(side: OrderSide) -> dict[UnitId, set[UnitId]]:
    """Return the units with objects that need an object of each unit."""
    dependent_units: dict[UnitId, set[UnitId]] = {}
    for edge in side.graph.edges:
        before, after = side.graph.nodes[edge.before].unit, side.graph.nodes[edge.after].unit
        if before is not None and after is not None and before != after and _is_needed(edge):
            dependent_units.setdefault(before, set()).add(after)
    return dependent_units


def _descendants(side: OrderSide, unit: UnitId) -> set[UnitId]:
    """Return the units that a unit creates, directly or not: they change only by themselves."""
    descendants: set[UnitId] = set()
    pending = [unit]
    while pending:
        for child in side.children.get(pending.pop(), ()):
            if child not in descendants:
                descendants.add(child)
                pending.append(child)
    return descendants


def _is_needed(edge: GraphEdge) -> bool:
    return not (edge.kind is EdgeKind.PARENT or edge.is_optional or edge.effect is Effect.NONE)


def compare_critical_paths(
    base: OrderSide, head: OrderSide, base_times: Times, head_times: Times
) -> CriticalPathChange | None:
    """Return the critical paths of both sides; None if they take the same time."""
    before, after = _critical_path(base, base_times), _critical_path(head, head_times)
    return (
        CriticalPathChange(before=before, after=after)
        if before.duration != after.duration
        else None
    )


def _critical_path(side: OrderSide, times: Times) -> CriticalPathEnd:
    path = find_critical_path(side.graph, times.duration_of, times.delay_after)
    steps = [side.graph.steps[critical.step] for critical in path if critical.duration]
    return CriticalPathEnd(
        duration=path[-1].finishes_at if path else Ms(0),
        steps=tuple(f"{step.unit} {step_name(step)}" for step in steps),
    )
