"""What has left Git goes: inside the sync, as Argo CD and Flux do it.

In Argo CD's order the waves of what goes are turned round, and each wave deletes before it applies.
In Flux's order deletions come behind everything that is applied, last kinds first, and nobody waits
for their end.

Takes a plan and what is stale; gives the plan with deletions in it. Its digest stays: it covers
what Git says, and what lives is added when a rollout begins. What goes only if somebody agrees is
in the plan, too, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import msgspec

from tidegate.model.helm_order import kind_rank
from tidegate.model.manifest import Phase
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.plan import Because, Deed, Edge, Item, Plan, PlannedUnit, Step, digest_step
from tidegate.model.policy import Consent, Handling, Order
from tidegate.model.unit import UnitId
from tidegate.plan.chains import link_chain, mark_last, step_id
from tidegate.plan.cycles import put_in_order
from tidegate.plan.gates import FIRST
from tidegate.plan.joints import END, step_behind
from tidegate.plan.releases import OBJECTS
from tidegate.plan.stages import STAGES, rank_of

PHASES = {phase.value: place for place, phase in enumerate(Phase)}
LAST_STAGE = STAGES[-1]
Batch = tuple[Item, ...]


class Stale(msgspec.Struct, frozen=True):
    """An object of a unit that Git no longer has; wave and handling are those it lives with.

    `budget`: how long its end may take. `releases`: finalizers that nobody but us takes off.
    """

    ref: Ref
    wave: int = 0
    handling: Handling = Handling()
    budget: Ms = Ms(0)
    releases: tuple[str, ...] = ()


def swap_waves(waves: Iterable[int]) -> dict[int, int]:
    """Which wave each wave of deletions takes: first and last change places, and so on inwards."""
    ordered = sorted(set(waves))
    return dict(zip(ordered, reversed(ordered), strict=True))


def prune_units(plan: Plan, stale: Iterable[tuple[PlannedUnit, Sequence[Stale]]]) -> Plan:
    """The plan with the deletions of these units in it; what may not be pruned is left alone."""
    by_unit: dict[UnitId, list[Step]] = {}
    for step in plan.steps:
        by_unit.setdefault(step.unit, []).append(step)
    changed: list[tuple[list[Step], list[Step]]] = []
    for unit, all_stale in stale:
        mine = by_unit.get(unit.id, [])
        if unit.policy.order is Order.STAGES:
            steps = _behind_stages(mine, unit, [one for one in all_stale if _may_go(one)])
        elif unit.policy.release is not None:
            steps = _behind_objects(mine, unit, [one for one in all_stale if _may_go(one)])
        else:
            steps = _into_waves(mine, unit, all_stale)
        if steps != mine:
            changed.append((mine, mark_last(steps)))
    return _with_steps(plan, changed) if changed else plan


def is_definition(kind: Kind) -> bool:
    """Argo CD never deletes these: everything of their kind would go along."""
    return (kind.group, kind.name) == ("apiextensions.k8s.io", "CustomResourceDefinition")


def deletion_of(one: Stale, *, asks: bool, gates: bool = True) -> Item:
    handling, budget = one.handling, one.budget
    return Item(
        ref=one.ref,
        deed=Deed.DELETE,
        asks=asks,
        handling=handling,
        budget=budget,
        releases=one.releases,
        gates=gates,
    )


def reversed_batches(items: Iterable[Item]) -> tuple[Batch, ...]:
    """Deletions in Flux's order turned round; kind after kind, objects of a kind at once."""
    ordered = sorted(items, key=lambda item: rank_of(item.ref), reverse=True)
    kinds = groupby(ordered, key=lambda item: item.ref.kind.name)
    return tuple(tuple(batch) for _, batch in kinds)


def _may_go(one: Stale) -> bool:
    return one.handling.prune is not Consent.NO


def _prune_of(one: Stale, *, gates: bool = True) -> Item:
    return deletion_of(one, asks=one.handling.prune is Consent.ASK, gates=gates)


def _into_waves(mine: list[Step], unit: PlannedUnit, stale: Sequence[Stale]) -> list[Step]:
    """The unit's steps with the deletions of each wave before what the wave applies.

    What may not be pruned still counts where waves are turned round.
    """
    swapped = swap_waves(one.wave for one in stale)
    kept = (step.wave for step in mine if step.phase == Phase.SYNC)
    last = max([0, *kept, *swapped.values()]) + 1
    by_wave: dict[int, list[Item]] = {}
    for one in sorted(filter(_may_go, stale), key=lambda one: one.ref):
        if not is_definition(one.ref.kind):
            wave = last if one.handling.last else swapped[one.wave]
            by_wave.setdefault(wave, []).append(_prune_of(one))
    if not by_wave:
        return mine
    steps = list(mine)
    for wave, items in by_wave.items():
        known = (place for place, step in enumerate(steps) if _is_of(step, wave))
        at = next(known, None)
        if at is None:
            at = next(
                (place for place, step in enumerate(steps) if _is_behind(step, wave)), len(steps)
            )
            steps.insert(at, _empty(unit, Phase.SYNC, wave))
        steps[at] = _holding(steps[at], (tuple(items), *steps[at].batches))
    return steps


def _is_of(step: Step, wave: int) -> bool:
    is_sync = step.phase == Phase.SYNC and not step.stage and not step.is_joint
    return is_sync and step.wave == wave


def _is_behind(step: Step, wave: int) -> bool:
    """Whether a step comes after a wave; what a unit awaits first has none, nor has its end."""
    if step.phase != Phase.SYNC or step.stage:
        return PHASES[step.phase] > PHASES[Phase.SYNC] or step.stage not in {"", FIRST}
    return step.wave > wave


def _behind_stages(mine: list[Step], unit: PlannedUnit, going: list[Stale]) -> list[Step]:
    """The unit's steps with the deletions behind everything that the last of them applies."""
    if not going:
        return mine
    deletions = reversed_batches(_prune_of(one, gates=False) for one in going)
    applied = [place for place, step in enumerate(mine) if step.batches]
    if not applied:
        end = next((at for at, step in enumerate(mine) if step.stage == END), len(mine))
        return [*mine[:end], _holding(_empty(unit, LAST_STAGE), deletions), *mine[end:]]
    last = mine[applied[-1]]
    whole = _holding(last, (*last.batches, *deletions))
    return [whole if step is last else step for step in mine]


def _behind_objects(mine: list[Step], unit: PlannedUnit, going: list[Stale]) -> list[Step]:
    """The steps of a release with what has left its chart behind what is applied, as Helm has it.

    Nobody waits for its end.
    """
    going = [one for one in going if not is_definition(one.ref.kind)]
    if not going:
        return mine
    ordered = sorted(going, key=lambda one: (kind_rank(one.ref.kind.name), one.ref))
    kinds = groupby((_prune_of(one, gates=False) for one in ordered), lambda it: it.ref.kind.name)
    deletions = tuple(tuple(batch) for _, batch in kinds)
    at = next((at for at, step in enumerate(mine) if step.stage == OBJECTS), None)
    if at is not None:
        whole = _holding(mine[at], (*mine[at].batches, *deletions))
        return [*mine[:at], whole, *mine[at + 1 :]]
    after = (at for at, step in enumerate(mine) if step.phase == Phase.POST_SYNC)
    end = next((at for at, step in enumerate(mine) if step.stage == END), len(mine))
    at = next(after, end)
    return [*mine[:at], _holding(_empty(unit, OBJECTS), deletions), *mine[at:]]


def _holding(step: Step, batches: tuple[Batch, ...]) -> Step:
    digest = digest_step(batches, step.expands)
    return msgspec.structs.replace(step, batches=batches, digest=digest)


def _empty(unit: PlannedUnit, spot: str, wave: int | None = None) -> Step:
    name = step_id(unit, spot) if wave is None else step_id(unit, spot, wave)
    stage = spot if wave is None else ""
    return Step(id=name, unit=unit.id, cluster=unit.cluster, wave=wave or 0, stage=stage, digest="")


def _with_steps(plan: Plan, changed: list[tuple[list[Step], list[Step]]]) -> Plan:
    """The plan with other steps for some units.

    Their chains are made anew. Who waits for a unit waits for its new last step; and what its first
    step waited for, its new first one waits for as well.
    """
    links = {edge for old, _ in changed for edge in link_chain(old)}
    edges = [edge for _, new in changed for edge in link_chain(new)]
    moved: dict[tuple[str, bool], str] = {}
    for old, new in changed:
        moved |= _moved_ends(old, new)
    behind = _behind_joints(plan, changed, moved)
    for edge in plan.edges:
        if edge not in links:
            before = moved.get((edge.before, True), edge.before)
            after = moved.get((edge.after, False), edge.after)
            before, after = behind.get(edge, (before, after))
            edges.append(msgspec.structs.replace(edge, before=before, after=after))
    ordered = put_in_order({step.id: step for step in _in_place(plan, changed)}, edges)
    return msgspec.structs.replace(plan, steps=ordered, edges=tuple(dict.fromkeys(edges)))


def _behind_joints(
    plan: Plan, changed: list[tuple[list[Step], list[Step]]], moved: Mapping[tuple[str, bool], str]
) -> dict[Edge, tuple[str, str]]:
    """The ends of edges to and from units that a changed one brings.

    They begin where their wave does, and what is behind it now waits for them.
    """
    chains = {old[0].unit: new for old, new in changed if old}
    steps = {step.id: step for step in plan.steps}
    parents = [edge for edge in plan.edges if edge.because is Because.PARENT]
    firsts = {step.unit: step.id for step in reversed(plan.steps) if not step.rescues}
    found: dict[Edge, tuple[str, str]] = {}
    behind: dict[tuple[UnitId, UnitId], str] = {}
    by_joint: dict[str, str] = {}
    for edge in parents:
        joint, child = steps[edge.before], steps[edge.after].unit
        if edge.after == firsts[child] and joint.unit in chains:
            found[edge] = (joint.id, moved.get((edge.after, False), edge.after))
            if joint.id not in by_joint:
                step = step_behind(chains[joint.unit], joint)
                by_joint[joint.id] = step.id if step else ""
            behind[joint.unit, child] = by_joint[joint.id]
    for edge in parents:
        spot = steps[edge.after].unit, steps[edge.before].unit
        if edge not in found and behind.get(spot):
            found[edge] = (moved.get((edge.before, True), edge.before), behind[spot])
    return found


def _in_place(plan: Plan, changed: list[tuple[list[Step], list[Step]]]) -> Iterable[Step]:
    """The new steps of each unit where the first old one stood, or at the end."""
    firsts = {old[0].id: new for old, new in changed if old}
    left = {step.id for old, _ in changed for step in old}
    for step in plan.steps:
        yield from firsts.get(step.id, ())
        if step.id not in left:
            yield step
    for old, new in changed:
        if not old:
            yield from new


def _moved_ends(old: list[Step], new: list[Step]) -> dict[tuple[str, bool], str]:
    """From the ends of the old chain to those of the new one; True where something leaves it."""
    before = [step.id for step in old if not step.rescues]
    after = [step.id for step in new if not step.rescues]
    if not before or not after:
        return {}
    return {(before[-1], True): after[-1], (before[0], False): after[0]}
