"""Edges between steps, from precedences between units, objects and steps.

Objects of one step that depend on each other split the step:

a wave with a, b, c and "c after a"   →   `wave 0`: a, b    `wave 0` part 2: c

Objects with external dependencies also split it, so that the rest of the step does not wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import msgspec

from tidegate.errors import PlanError, sanitize
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.plans.plan import (
    Edge,
    PlanItem,
    Precedence,
    PrecedenceEnd,
    Step,
    digest_step,
    managed_items,
    step_items,
)
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.cycles import topological_sort

ObjectPair: TypeAlias = tuple[ClusterRef, ClusterRef]


def make_edges(
    precedences: Iterable[Precedence], chains: Mapping[UnitId, list[Step]]
) -> list[Edge]:
    """Return edges between the steps of units; steps named by id may be of other units."""
    precedences = list(precedences)
    endpoints = _Endpoints(chains, precedences)
    return [
        Edge(before, after, precedence.reason, precedence.strength, precedence.location)
        for precedence in precedences
        for after in endpoints.first_steps(precedence.after)
        for before in endpoints.last_steps(precedence.before)
        if before != after
    ]


class _Endpoints:
    """The first and the last steps of units and objects."""

    def __init__(self, chains: Mapping[UnitId, list[Step]], precedences: list[Precedence]) -> None:
        self._chains = {
            name: [step.id for step in chain if not step.only_on_failure]
            for name, chain in chains.items()
        }
        object_refs = {
            end
            for precedence in precedences
            for end in (precedence.before, precedence.after)
            if isinstance(end, ClusterRef)
        }
        self._steps: dict[ClusterRef, list[str]] = {object_ref: [] for object_ref in object_refs}
        steps = (step for chain in chains.values() for step in chain) if object_refs else ()
        for step in steps:
            for object_ref in {
                ClusterRef(step.cluster, item.ref) for item in managed_items(step)
            } & object_refs:
                self._steps[object_ref].append(step.id)
        self._predecessors: dict[UnitId, list[PrecedenceEnd]] = {}
        for precedence in precedences:
            if isinstance(precedence.after, UnitId):
                self._predecessors.setdefault(precedence.after, []).append(precedence.before)

    def first_steps(self, end: PrecedenceEnd) -> list[str]:
        match end:
            case UnitId():
                return self._chains.get(end, [])[:1]
            case ClusterRef():
                return self._steps[end]
            case _:
                return [end]

    def last_steps(self, end: PrecedenceEnd) -> list[str]:
        """Return the last steps of an end. A unit without steps ends with its predecessors."""
        step_ids: dict[str, None] = {}
        seen: set[PrecedenceEnd] = set()
        pending = [end]
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            last = (
                self._chains.get(current, [])[-1:]
                if isinstance(current, UnitId)
                else self.first_steps(current)
            )
            step_ids |= dict.fromkeys(last)
            if not last and isinstance(current, UnitId):
                pending += reversed(self._predecessors.get(current, []))
        return list(step_ids)


def object_pairs(precedences: Iterable[Precedence]) -> list[ObjectPair]:
    """Return the pairs of objects among precedences."""
    return [
        (precedence.before, precedence.after)
        for precedence in precedences
        if isinstance(precedence.before, ClusterRef) and isinstance(precedence.after, ClusterRef)
    ]


def split_steps(
    steps: Iterable[Step], pairs: list[ObjectPair], delayed: Collection[ClusterRef] = ()
) -> list[Step]:
    """Return the steps of a unit, split where their objects depend on each other or are delayed."""
    if not pairs and not delayed:
        return list(steps)
    return [part for step in steps for part in _split_step(step, pairs, delayed)]


def _split_step(step: Step, pairs: list[ObjectPair], delayed: Collection[ClusterRef]) -> list[Step]:
    object_refs = dict.fromkeys(ClusterRef(step.cluster, item.ref) for item in step_items(step))
    inner_pairs = [
        (before, after) for before, after in pairs if before in object_refs and after in object_refs
    ]
    delayed_refs = {object_ref for object_ref in object_refs if object_ref in delayed}
    if not inner_pairs and len(delayed_refs) in {0, len(object_refs)}:
        return [step]
    ordered, cycle = topological_sort(object_refs, inner_pairs)
    if cycle:
        chain = " → ".join(f"`{cycle_ref.ref}`" for cycle_ref in (*cycle, cycle[0]))
        raise PlanError("plan.cycle", f"objects wait for each other: {sanitize(chain)}")
    predecessors: dict[ClusterRef, list[ClusterRef]] = {}
    for before, dependent in inner_pairs:
        predecessors.setdefault(dependent, []).append(before)
    levels: dict[Ref, int] = {}
    for object_ref in ordered:
        earlier_levels = [
            levels[predecessor.ref] for predecessor in predecessors.get(object_ref, ())
        ]
        levels[object_ref.ref] = 1 + max(
            earlier_levels, default=0 if object_ref in delayed_refs else -1
        )
    first = min(levels.values())
    levels = {ref: level - first for ref, level in levels.items()}
    return [_step_part(step, number, levels) for number in range(max(levels.values()) + 1)]


def _step_part(step: Step, number: int, levels: Mapping[Ref, int]) -> Step:
    def is_in_part(item: PlanItem) -> bool:
        return levels[item.ref] == number

    filtered = (tuple(filter(is_in_part, batch)) for batch in step.batches)
    batches = tuple(batch for batch in filtered if batch)
    return msgspec.structs.replace(
        step,
        id=f"{step.id}.{number + 1}" if number else step.id,
        part=number + 1 if number else 0,
        batches=batches,
        digest=digest_step(batches, step.expansion),
    )
