"""The chain of steps of a unit, and plans from which steps are removed.

When a step is removed from a plan, the steps around it are linked, so that no step starts earlier
than before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise

import msgspec

from tidegate.model.plans.plan import (
    Edge,
    EdgeReason,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    Step,
    digest_step,
    step_items,
)
from tidegate.model.units.unit import Strength, UnitId


def step_id(unit: PlannedUnit, *position: object) -> str:
    """Return the id of a step: its cluster, its unit and its position in the unit."""
    return "/".join(
        str(part) for part in (unit.cluster, unit.id.tracking_id, *position) if part != ""
    )


def link_chain(steps: Iterable[Step]) -> list[Edge]:
    """Return edges from each step of a unit to the next. Steps that run on failure have none."""
    chain = (step for step in steps if not step.only_on_failure)
    return [
        Edge(before.id, after.id, edge_reason(before, after)) for before, after in pairwise(chain)
    ]


def edge_reason(before: Step, after: Step) -> EdgeReason:
    """Return why one step of a unit comes after another."""
    if after.part and before.wave_key == after.wave_key:
        return EdgeReason.REFERENCE
    if after.stage and after.phase == before.phase:
        return EdgeReason.STAGE
    return EdgeReason.WAVE if before.phase == after.phase else EdgeReason.PHASE


def mark_last(steps: Iterable[Step]) -> list[Step]:
    """Return the steps of a unit in order, the last one marked.

    Argo CD waits for the objects of the last wave only if a hook is among them, and only if there
    is more than one wave.
    """
    unit_steps = list(steps)
    chain = [step for step in unit_steps if not step.only_on_failure]
    last = chain[-1] if chain else None
    has_several_waves = len({step.wave_key for step in unit_steps if not step.only_creates}) > 1
    if (
        last is not None
        and has_several_waves
        and any(item.hook is not None for item in step_items(last))
    ):
        last = None
    return [
        step
        if step.is_last == (step is last)
        else msgspec.structs.replace(step, is_last=step is last)
        for step in unit_steps
    ]


def filter_items(step: Step, should_keep: Callable[[PlanItem], bool]) -> Step | None:
    """Return the step with the items to keep, or None if there are none."""
    filtered = (tuple(item for item in batch if should_keep(item)) for batch in step.batches)
    batches = tuple(batch for batch in filtered if batch)
    if batches == step.batches:
        return step  # keep joints: they avoid an edge for each pair of units
    if not batches:
        return None
    return msgspec.structs.replace(
        step, batches=batches, digest=digest_step(batches, step.expansion)
    )


def narrow_plan(plan: Plan, narrow_step: Callable[[Step], Step | None]) -> Plan:
    """Apply `narrow_step` to each step of a plan; None removes the step. The digest stays."""
    narrowed = {step.id: narrow_step(step) for step in plan.steps}
    if all(narrowed[step.id] is step for step in plan.steps):
        return plan
    remaining = {name: step for name, step in narrowed.items() if step is not None}
    by_unit: dict[UnitId, list[Step]] = {}
    for step in remaining.values():
        by_unit.setdefault(step.unit, []).append(step)
    marked = {step.id: step for unit_steps in by_unit.values() for step in mark_last(unit_steps)}
    steps = tuple(marked[name] for name in remaining)
    return msgspec.structs.replace(plan, steps=steps, edges=_bridge_edges(plan, remaining))


def plan_for_units(plan: Plan, units: Collection[UnitId]) -> Plan:
    """Return the plan of some units, which then wait for no other unit."""
    is_alone = len(units) == 1

    def keep_step(step: Step) -> Step | None:
        is_kept = step.unit in units and (step.batches or not is_alone)
        return step if is_kept else None

    narrowed = narrow_plan(plan, keep_step)
    planned_units = tuple(
        msgspec.structs.replace(planned_unit, group="")
        for planned_unit in plan.units
        if planned_unit.id in units
    )
    return Plan.from_fragment(
        PlanFragment(units=planned_units, steps=narrowed.steps, edges=narrowed.edges)
    )


def _bridge_edges(plan: Plan, remaining: dict[str, Step]) -> tuple[Edge, ...]:
    """Return the edges between the remaining steps, with new ones across removed steps."""
    incoming: dict[str, list[Edge]] = {}
    for edge in plan.edges:
        incoming.setdefault(edge.after, []).append(edge)
    units = {step.id: step.unit for step in plan.steps}
    bridges: dict[str, list[Edge]] = {}

    def resolve(edge: Edge) -> list[Edge]:
        """Return the edge, or the edges from all steps before it if its start was removed."""
        if edge.before not in bridges:
            return [edge]
        return [_join_edges(upstream, edge, units) for upstream in bridges[edge.before]]

    for step in plan.steps:
        if step.id not in remaining:
            # Without duplicates: the number of paths through removed steps may be exponential.
            bridges[step.id] = list(
                dict.fromkeys(
                    upstream for edge in incoming.get(step.id, ()) for upstream in resolve(edge)
                )
            )
    bridged = (
        _with_new_reason(upstream, remaining) if upstream is not edge else edge
        for edge in plan.edges
        if edge.after in remaining
        for upstream in resolve(edge)
    )
    return tuple(dict.fromkeys(bridged))


def _join_edges(upstream: Edge, downstream: Edge, units: Mapping[str, UnitId]) -> Edge:
    """Join two consecutive edges: soft if one of them is, with the reason between units."""
    because = (
        downstream.reason if units[upstream.before] == units[upstream.after] else upstream.reason
    )
    is_soft = Strength.SOFT in {upstream.strength, downstream.strength}
    strength = Strength.SOFT if is_soft else Strength.HARD
    return Edge(
        upstream.before,
        downstream.after,
        because,
        strength,
        downstream.location or upstream.location,
    )


def _with_new_reason(edge: Edge, remaining: dict[str, Step]) -> Edge:
    """Return the edge with the reason that holds now, if both steps are of one unit."""
    before, after = remaining[edge.before], remaining[edge.after]
    if before.unit != after.unit:
        return edge
    return Edge(before.id, after.id, edge_reason(before, after), edge.strength, edge.location)
