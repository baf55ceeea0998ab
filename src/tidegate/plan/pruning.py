"""What has left Git goes: inside the sync, in waves turned round, as Argo CD does it.

Takes a plan and what is stale; gives the plan with deletions in it. Its digest stays: it covers
what Git says, and what lives is added when a rollout begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from tidegate.model.manifest import Phase
from tidegate.model.objects import Ref
from tidegate.model.plan import (
    Because,
    Consent,
    Deed,
    Edge,
    Handling,
    Item,
    Plan,
    PlannedUnit,
    Step,
)

PHASES = list(Phase)


class Stale(msgspec.Struct, frozen=True, order=True):
    """An object of a unit that Git no longer has; wave and handling are those it lives with."""

    ref: Ref
    wave: int = 0
    handling: Handling = Handling()


def swap_waves(waves: Iterable[int]) -> dict[int, int]:
    """Which wave each wave of deletions takes: first and last change places, and so on inwards."""
    ordered = sorted(set(waves))
    return dict(zip(ordered, reversed(ordered), strict=True))


def add_prunes(plan: Plan, unit: PlannedUnit, stale: Iterable[Stale]) -> Plan:
    """The plan with these deletions in it; what may not be pruned is left alone."""
    going = sorted(one for one in stale if one.handling.prune is Consent.YES)
    if not going:
        return plan
    mine = [step for step in plan.steps if step.unit == unit.name]
    swapped = swap_waves(one.wave for one in going)
    kept = [step.wave for step in mine if step.phase == Phase.SYNC]
    last = max([0, *kept, *swapped.values()]) + 1
    by_wave: dict[int, list[Item]] = {}
    for one in going:
        wave = last if one.handling.last else swapped[one.wave]
        item = Item(ref=one.ref, deed=Deed.DELETE, handling=one.handling)
        by_wave.setdefault(wave, []).append(item)
    return _with_steps(plan, unit, _merge(mine, unit, by_wave))


def _merge(mine: list[Step], unit: PlannedUnit, by_wave: dict[int, list[Item]]) -> list[Step]:
    """The unit's steps with the deletions of each wave before what the wave applies."""
    steps = {(step.phase, step.wave): step for step in mine}
    for wave, items in by_wave.items():
        known = steps.get((Phase.SYNC, wave)) or _empty(unit, wave)
        batches = (tuple(items), *known.batches)
        steps[Phase.SYNC, wave] = msgspec.structs.replace(known, batches=batches)
    ordered = sorted(steps.values(), key=lambda step: (PHASES.index(Phase(step.phase)), step.wave))
    ends = [step.id for step in ordered if not step.rescues][-1:]
    return [msgspec.structs.replace(step, last=step.id in ends) for step in ordered]


def _empty(unit: PlannedUnit, wave: int) -> Step:
    spot = f"{Phase.SYNC}/{wave}"
    name = "/".join(part for part in (unit.cluster, unit.name, spot) if part)
    return Step(id=name, unit=unit.name, cluster=unit.cluster, wave=wave, digest="prune")


def _with_steps(plan: Plan, unit: PlannedUnit, steps: list[Step]) -> Plan:
    """The plan with other steps for a unit: its chain is made anew, other edges find its ends."""
    known = {step.id: step.unit for step in plan.steps}
    chain = [step for step in steps if not step.rescues]
    edges = [
        Edge(before.id, after.id, _because(before, after)) for before, after in pairwise(chain)
    ]
    for edge in plan.edges:
        inside = (known[edge.before] == unit.name, known[edge.after] == unit.name)
        if inside == (True, True):
            continue
        before = chain[-1].id if inside[0] else edge.before
        after = chain[0].id if inside[1] else edge.after
        edges.append(Edge(before, after, edge.because, edge.strength))
    others = [step for step in plan.steps if step.unit != unit.name]
    first = next((n for n, step in enumerate(plan.steps) if step.unit == unit.name), len(others))
    ordered = (*others[:first], *steps, *others[first:])
    return msgspec.structs.replace(plan, steps=tuple(ordered), edges=tuple(edges))


def _because(before: Step, after: Step) -> Because:
    return Because.WAVE if before.phase == after.phase else Because.PHASE
