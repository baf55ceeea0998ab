"""Deletion of objects that are no longer in Git, as a part of the sync, like Argo CD and Flux.

With Argo CD semantics, the waves of pruned objects are reversed, again after each deletion, and
each wave deletes before it applies. With Flux semantics, objects are deleted after everything is
applied, last kinds first, and their deletion is not awaited.

The digest of the plan stays, because it covers the desired state; prune candidates are added when a
rollout starts. Objects that require a confirmation are in the plan and marked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby

import msgspec

from tidegate.model.k8s.helm_order import install_rank
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.plans.manifest import PHASE_INDEXES, Phase
from tidegate.model.plans.plan import (
    Edge,
    EdgeReason,
    ItemAction,
    Plan,
    PlanItem,
    PlannedUnit,
    Step,
    digest_step,
)
from tidegate.model.times import Ms
from tidegate.model.units.policy import ObjectOptions, Order, Permission
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.chains import link_chain, mark_last, step_id
from tidegate.plan.build.child_units import END_STAGE, step_after
from tidegate.plan.build.cycles import sort_steps
from tidegate.plan.build.gates import AWAIT_STAGE
from tidegate.plan.build.releases import OBJECTS_STAGE
from tidegate.plan.build.stages import STAGES, object_rank

LAST_STAGE = STAGES[-1]
Batch = tuple[PlanItem, ...]


class PruneCandidate(msgspec.Struct, frozen=True):
    """A live object of a unit that is no longer in Git, with its live wave and options."""

    ref: Ref
    wave: int = 0
    options: ObjectOptions = ObjectOptions()
    deletion_timeout: Ms = Ms(0)
    """How long its deletion may take."""
    removed_finalizers: tuple[str, ...] = ()
    """Finalizers that only Tidegate removes."""


def reverse_waves(waves: Iterable[int]) -> dict[int, int]:
    """Return the new wave of each wave: the first and the last swap, and so on inwards."""
    ordered = sorted(set(waves))
    return dict(zip(ordered, reversed(ordered), strict=True))


def prune_units(
    plan: Plan, candidates_by_unit: Iterable[tuple[PlannedUnit, Sequence[PruneCandidate]]]
) -> Plan:
    """Return the plan with the deletions of units. Objects that may not be pruned are kept."""
    by_unit: dict[UnitId, list[Step]] = {}
    for step in plan.steps:
        by_unit.setdefault(step.unit, []).append(step)
    changed: list[tuple[list[Step], list[Step]]] = []
    for unit, candidates in candidates_by_unit:
        unit_steps = by_unit.get(unit.id, [])
        if unit.policy.order is Order.STAGES:
            steps = _prune_after_stages(
                unit_steps, unit, [candidate for candidate in candidates if _can_prune(candidate)]
            )
        elif unit.policy.release is not None:
            steps = _prune_after_objects(
                unit_steps, unit, [candidate for candidate in candidates if _can_prune(candidate)]
            )
        else:
            steps = _prune_in_waves(unit_steps, unit, candidates)
        if steps != unit_steps:
            changed.append((unit_steps, mark_last(steps)))
    return _replace_steps(plan, changed) if changed else plan


def is_crd(kind: Kind) -> bool:
    """Return whether a kind is CustomResourceDefinition.

    Argo CD never prunes CRDs, because all their custom resources would be deleted.
    """
    return (kind.group, kind.name) == ("apiextensions.k8s.io", "CustomResourceDefinition")


def delete_item(
    candidate: PruneCandidate, *, requires_confirmation: bool, is_gating: bool = True
) -> PlanItem:
    options, timeout = candidate.options, candidate.deletion_timeout
    return PlanItem(
        ref=candidate.ref,
        action=ItemAction.DELETE,
        requires_confirmation=requires_confirmation,
        options=options,
        readiness_timeout=timeout,
        removed_finalizers=candidate.removed_finalizers,
        is_gating=is_gating,
    )


def reversed_batches(items: Iterable[PlanItem]) -> tuple[Batch, ...]:
    """Return deletions in the reverse of Flux's order, one batch per kind."""
    ordered = sorted(items, key=lambda item: object_rank(item.ref), reverse=True)
    kinds = groupby(ordered, key=lambda item: item.ref.kind.name)
    return tuple(tuple(batch) for _, batch in kinds)


def _can_prune(candidate: PruneCandidate) -> bool:
    return candidate.options.prune is not Permission.NO


def _prune_item(candidate: PruneCandidate, *, is_gating: bool = True) -> PlanItem:
    return delete_item(
        candidate,
        requires_confirmation=candidate.options.prune is Permission.ASK,
        is_gating=is_gating,
    )


def _prune_in_waves(
    unit_steps: list[Step], unit: PlannedUnit, candidates: Sequence[PruneCandidate]
) -> list[Step]:
    """Return the steps of a unit, in which each wave deletes before it applies.

    Deletions that move to a wave that has been applied are a step of their own.
    """
    applied_waves = [step.wave for step in unit_steps if step.phase == Phase.SYNC]
    rounds = list(
        _prune_rounds(
            candidates, applied_waves, reverses_anew=unit.policy.semantics.reverses_prunes_anew
        )
    )
    steps, start, counts = list(unit_steps), 0, Counter[int]()
    for wave, pruned in rounds:
        counts[wave] += 1
        positions = range(start, len(steps))
        in_wave = (index for index in positions if _is_in_wave(steps[index], wave))
        position = next(in_wave, None) if counts[wave] == 1 else None
        if position is None:
            after_wave = (index for index in positions if _is_after_wave(steps[index], wave))
            position = next(after_wave, len(steps))
            steps.insert(position, _prune_step(unit, wave, counts[wave]))
        items = tuple(map(_prune_item, pruned))
        steps[position] = _with_batches(steps[position], (items, *steps[position].batches))
        start = position + 1
    return steps


def _prune_rounds(
    candidates: Sequence[PruneCandidate], applied_waves: Sequence[int], *, reverses_anew: bool
) -> Iterator[tuple[int, list[PruneCandidate]]]:
    """Yield what is deleted together, with its wave, in order.

    Objects that may not be pruned count when waves are reversed. `reverses_anew`: the waves are
    those of the objects that still exist, as in `getSyncTasks` of
    gitops-engine/pkg/sync/sync_context.go in Argo CD 3.5, which runs again after each wave.
    """
    existing = sorted(candidates, key=lambda candidate: candidate.ref)
    remaining = existing
    new_waves = reverse_waves(candidate.wave for candidate in existing)
    while remaining:
        if reverses_anew:
            new_waves = reverse_waves(candidate.wave for candidate in existing)
        last_wave = max([0, *applied_waves, *new_waves.values()]) + 1
        by_wave: dict[int, list[PruneCandidate]] = {}
        for candidate in remaining:
            wave = last_wave if candidate.options.prune_last else new_waves[candidate.wave]
            by_wave.setdefault(wave, []).append(candidate)
        wave = min(by_wave)
        pruned = [
            candidate
            for candidate in by_wave.pop(wave)
            if _can_prune(candidate) and not is_crd(candidate.ref.kind)
        ]
        if pruned:
            yield wave, pruned
        remaining = [*chain.from_iterable(by_wave.values())]
        gone = {candidate.ref for candidate in pruned}
        existing = [candidate for candidate in existing if candidate.ref not in gone]


def _is_in_wave(step: Step, wave: int) -> bool:
    is_wave_step = step.phase == Phase.SYNC and not step.stage and not step.is_placeholder
    return is_wave_step and step.wave == wave


def _is_after_wave(step: Step, wave: int) -> bool:
    """Return whether a step comes after a wave. The await step and the end have no wave."""
    if step.phase != Phase.SYNC or step.stage:
        return PHASE_INDEXES[step.phase] > PHASE_INDEXES[Phase.SYNC] or step.stage not in {
            "",
            AWAIT_STAGE,
        }
    return step.wave > wave


def _prune_after_stages(
    unit_steps: list[Step], unit: PlannedUnit, candidates: list[PruneCandidate]
) -> list[Step]:
    """Return the steps of a unit with deletions after everything that the last step applies."""
    if not candidates:
        return unit_steps
    deletions = reversed_batches(
        _prune_item(candidate, is_gating=False) for candidate in candidates
    )
    applying_indexes = [index for index, step in enumerate(unit_steps) if step.batches]
    if not applying_indexes:
        end = next(
            (index for index, step in enumerate(unit_steps) if step.stage == END_STAGE),
            len(unit_steps),
        )
        return [
            *unit_steps[:end],
            _with_batches(_empty_step(unit, LAST_STAGE), deletions),
            *unit_steps[end:],
        ]
    last = unit_steps[applying_indexes[-1]]
    extended = _with_batches(last, (*last.batches, *deletions))
    return [extended if step is last else step for step in unit_steps]


def _prune_after_objects(
    unit_steps: list[Step], unit: PlannedUnit, candidates: list[PruneCandidate]
) -> list[Step]:
    """Return the steps of a release with deletions after the applied objects, like Helm.

    The deletions are not awaited.
    """
    candidates = [candidate for candidate in candidates if not is_crd(candidate.ref.kind)]
    if not candidates:
        return unit_steps
    ordered = sorted(
        candidates, key=lambda candidate: (install_rank(candidate.ref.kind.name), candidate.ref)
    )
    kinds = groupby(
        (_prune_item(candidate, is_gating=False) for candidate in ordered),
        lambda item: item.ref.kind.name,
    )
    deletions = tuple(tuple(batch) for _, batch in kinds)
    index = next(
        (index for index, step in enumerate(unit_steps) if step.stage == OBJECTS_STAGE), None
    )
    if index is not None:
        extended = _with_batches(unit_steps[index], (*unit_steps[index].batches, *deletions))
        return [*unit_steps[:index], extended, *unit_steps[index + 1 :]]
    post_sync_indexes = (
        index for index, step in enumerate(unit_steps) if step.phase == Phase.POST_SYNC
    )
    end = next(
        (index for index, step in enumerate(unit_steps) if step.stage == END_STAGE), len(unit_steps)
    )
    index = next(post_sync_indexes, end)
    return [
        *unit_steps[:index],
        _with_batches(_empty_step(unit, OBJECTS_STAGE), deletions),
        *unit_steps[index:],
    ]


def _with_batches(step: Step, batches: tuple[Batch, ...]) -> Step:
    digest = digest_step(batches, step.expansion)
    return msgspec.structs.replace(step, batches=batches, digest=digest)


def _empty_step(unit: PlannedUnit, position: str, wave: int | None = None) -> Step:
    name = step_id(unit, position) if wave is None else step_id(unit, position, wave)
    stage = position if wave is None else ""
    return Step(id=name, unit=unit.id, cluster=unit.cluster, wave=wave or 0, stage=stage, digest="")


def _prune_step(unit: PlannedUnit, wave: int, number: int) -> Step:
    """Return an empty step for the deletions that move to a wave for the `number`th time."""
    step = _empty_step(unit, Phase.SYNC, wave)
    if number == 1:
        return step
    stage = f"wave {wave} prune {number}"
    return msgspec.structs.replace(step, id=f"{step.id}.prune{number}", stage=stage)


def _replace_steps(plan: Plan, changed: list[tuple[list[Step], list[Step]]]) -> Plan:
    """Return the plan with other steps for some units, whose chains are linked again.

    Dependents of a unit wait for its new last step. The new first step also waits for the
    predecessors of the old one.
    """
    old_edges = {edge for old, _ in changed for edge in link_chain(old)}
    edges = [edge for _, new in changed for edge in link_chain(new)]
    moved_ends: dict[tuple[str, bool], str] = {}
    for old, new in changed:
        moved_ends |= _moved_ends(old, new)
    child_ends = _child_ends(plan, changed, moved_ends)
    for edge in plan.edges:
        if edge not in old_edges:
            before = moved_ends.get((edge.before, True), edge.before)
            after = moved_ends.get((edge.after, False), edge.after)
            before, after = child_ends.get(edge, (before, after))
            edges.append(msgspec.structs.replace(edge, before=before, after=after))
    ordered = sort_steps({step.id: step for step in _merge_steps(plan, changed)}, edges)
    return msgspec.structs.replace(plan, steps=ordered, edges=tuple(dict.fromkeys(edges)))


def _child_ends(
    plan: Plan,
    changed: list[tuple[list[Step], list[Step]]],
    moved_ends: Mapping[tuple[str, bool], str],
) -> dict[Edge, tuple[str, str]]:
    """Return the new ends of edges to and from the child units of changed units.

    A child unit starts with its wave, and the new step after that wave waits for it.
    """
    chains = {old[0].unit: new for old, new in changed if old}
    steps = {step.id: step for step in plan.steps}
    parents = [edge for edge in plan.edges if edge.reason is EdgeReason.PARENT]
    first_steps = {step.unit: step.id for step in reversed(plan.steps) if not step.only_on_failure}
    ends: dict[Edge, tuple[str, str]] = {}
    next_by_child: dict[tuple[UnitId, UnitId], str] = {}
    next_by_placeholder: dict[str, str] = {}
    for edge in parents:
        placeholder, child = steps[edge.before], steps[edge.after].unit
        if edge.after == first_steps[child] and placeholder.unit in chains:
            ends[edge] = (placeholder.id, moved_ends.get((edge.after, False), edge.after))
            if placeholder.id not in next_by_placeholder:
                step = step_after(chains[placeholder.unit], placeholder)
                next_by_placeholder[placeholder.id] = step.id if step else ""
            next_by_child[placeholder.unit, child] = next_by_placeholder[placeholder.id]
    for edge in parents:
        parent_and_child = steps[edge.after].unit, steps[edge.before].unit
        if edge not in ends and next_by_child.get(parent_and_child):
            ends[edge] = (
                moved_ends.get((edge.before, True), edge.before),
                next_by_child[parent_and_child],
            )
    return ends


def _merge_steps(plan: Plan, changed: list[tuple[list[Step], list[Step]]]) -> Iterable[Step]:
    """Yield the new steps of each unit in place of its first old one, or at the end."""
    new_by_first = {old[0].id: new for old, new in changed if old}
    replaced_ids = {step.id for old, _ in changed for step in old}
    for step in plan.steps:
        yield from new_by_first.get(step.id, ())
        if step.id not in replaced_ids:
            yield step
    for old, new in changed:
        if not old:
            yield from new


def _moved_ends(old: list[Step], new: list[Step]) -> dict[tuple[str, bool], str]:
    """Map the ends of the old chain to those of the new one; True is for edges that leave the
    chain.
    """
    old_ids = [step.id for step in old if not step.only_on_failure]
    new_ids = [step.id for step in new if not step.only_on_failure]
    if not old_ids or not new_ids:
        return {}
    return {(old_ids[-1], True): new_ids[-1], (old_ids[0], False): new_ids[0]}
