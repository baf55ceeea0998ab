"""The chain that the steps of a unit make: what comes after what, and which is the last.

Plans are narrowed when a rollout leaves something out. Where a step goes, those around it are
linked, so that nobody starts earlier than before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

import msgspec

from tidegate.model.plan import (
    Because,
    Edge,
    Fragment,
    Item,
    Plan,
    PlannedUnit,
    Step,
    digest_step,
    items_of,
)
from tidegate.model.unit import Strength, UnitId


def step_id(unit: PlannedUnit, *spot: object) -> str:
    """What a step is called: by its cluster, its unit and its place in there."""
    return "/".join(str(part) for part in (unit.cluster, unit.id.mark, *spot) if part != "")


def link_chain(steps: Iterable[Step]) -> list[Edge]:
    """Edges from each step of a unit to the next; what rescues stands outside."""
    chain = (step for step in steps if not step.rescues)
    return [Edge(one.id, other.id, because_of(one, other)) for one, other in pairwise(chain)]


def because_of(before: Step, after: Step) -> Because:
    if after.part and before.spot == after.spot:
        return Because.REFERENCE
    if after.stage and after.phase == before.phase:
        return Because.STAGE
    return Because.WAVE if before.phase == after.phase else Because.PHASE


def mark_last(steps: Iterable[Step]) -> list[Step]:
    """The steps of a unit in their order, the last one marked.

    Argo CD waits for the objects of a last wave only if a hook is among them, and then only if it
    was not the only wave.
    """
    mine = list(steps)
    chain = [step for step in mine if not step.rescues]
    last = chain[-1] if chain else None
    several = len({step.spot for step in mine}) > 1
    if last is not None and several and any(item.hook is not None for item in items_of(last)):
        last = None
    return [
        step if step.last == (step is last) else msgspec.structs.replace(step, last=step is last)
        for step in mine
    ]


def keep_items(step: Step, wanted: Callable[[Item], bool]) -> Step | None:
    """The step with the items that are wanted; None where there are none of them."""
    kept = (tuple(item for item in batch if wanted(item)) for batch in step.batches)
    batches = tuple(batch for batch in kept if batch)
    if batches == step.batches:
        return step  # joints stay: without them each unit before one would lead to each behind
    if not batches:
        return None
    return msgspec.structs.replace(step, batches=batches, digest=digest_step(batches, step.expands))


def narrow(plan: Plan, cut: Callable[[Step], Step | None]) -> Plan:
    """The plan with what `cut` leaves of each step. Its digest stays what Git says."""
    left = {step.id: cut(step) for step in plan.steps}
    if all(left[step.id] is step for step in plan.steps):
        return plan
    kept = {name: step for name, step in left.items() if step is not None}
    by_unit: dict[UnitId, list[Step]] = {}
    for step in kept.values():
        by_unit.setdefault(step.unit, []).append(step)
    marked = {step.id: step for mine in by_unit.values() for step in mark_last(mine)}
    steps = tuple(marked[name] for name in kept)
    return msgspec.structs.replace(plan, steps=steps, edges=_bridge(plan, kept))


def part_of_unit(plan: Plan, unit: UnitId) -> Plan:
    """What one unit has to do, which waits for nobody then."""

    def cut(step: Step) -> Step | None:
        return step if step.unit == unit and step.batches else None

    narrowed = narrow(plan, cut)
    units = tuple(msgspec.structs.replace(one, group="") for one in plan.units if one.id == unit)
    return Plan.of(Fragment(units=units, steps=narrowed.steps, edges=narrowed.edges))


def _bridge(plan: Plan, kept: dict[str, Step]) -> tuple[Edge, ...]:
    """The edges between what is kept, with new ones across what is not."""
    entering: dict[str, list[Edge]] = {}
    for edge in plan.edges:
        entering.setdefault(edge.after, []).append(edge)
    units = {step.id: step.unit for step in plan.steps}
    across: dict[str, list[Edge]] = {}

    def reach(edge: Edge) -> list[Edge]:
        """The edge, or those from everything behind it where its beginning is gone."""
        if edge.before not in across:
            return [edge]
        return [_join(far, edge, units) for far in across[edge.before]]

    for step in plan.steps:
        if step.id not in kept:
            across[step.id] = [far for edge in entering.get(step.id, ()) for far in reach(edge)]
    bridged = (
        _told_anew(far, kept) if far is not edge else edge
        for edge in plan.edges
        if edge.after in kept
        for far in reach(edge)
    )
    return tuple(dict.fromkeys(bridged))


def _join(far: Edge, near: Edge, units: Mapping[str, UnitId]) -> Edge:
    """One edge for two in a row: soft if one of them is, and for the reason between units."""
    because = near.because if units[far.before] == units[far.after] else far.because
    soft = Strength.SOFT in {far.strength, near.strength}
    strength = Strength.SOFT if soft else Strength.HARD
    return Edge(far.before, near.after, because, strength, near.where or far.where)


def _told_anew(edge: Edge, kept: dict[str, Step]) -> Edge:
    """Between steps of one unit the reason is what tells them apart now."""
    before, after = kept[edge.before], kept[edge.after]
    if before.unit != after.unit:
        return edge
    return Edge(before.id, after.id, because_of(before, after), edge.strength, edge.where)
