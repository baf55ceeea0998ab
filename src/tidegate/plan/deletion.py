"""The plan that deletes a unit: hooks before, its objects in reverse, hooks after.

Argo CD's order goes from the highest wave to the lowest: a wave goes at once, and the next one when
it is gone. Flux's order is that of its kinds, turned round, in one go. What says that it wants to
stay is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec

from tidegate.model.helm_order import kind_rank_back
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.objects import Propagation
from tidegate.model.plan import (
    Fragment,
    HookPolicy,
    Item,
    Plan,
    PlannedUnit,
    Step,
    digest_bytes,
    digest_step,
    items_of,
)
from tidegate.model.policy import Consent, Order
from tidegate.plan.build import plan_unit
from tidegate.plan.chains import link_chain, step_id
from tidegate.plan.items import Budget, make_item
from tidegate.plan.pruning import Batch, Stale, deletion_of, is_definition, reversed_batches
from tidegate.plan.releases import by_weight

BEFORE = "predelete"
DELETE = "delete"
AFTER = "postdelete"
OWN = "own"


def build_deletion(wanted: Manifests, lives: Iterable[Stale], *, budget: Budget) -> Plan:
    """The plan that ends a unit. `lives`: all that is the unit's, its hooks of earlier syncs too.

    What goes only if somebody agrees is in the plan, too, and says so.
    """
    unit = plan_unit(wanted.unit)
    before = _hooks(unit, BEFORE, wanted.before_deletion, budget)
    after = _hooks(unit, AFTER, wanted.after_deletion, budget)
    known = {one.ref: one for one in (*_left_behind(wanted, before), *lives)}
    going = [
        _parting(known[ref], unit.policy.farewell)
        for ref in sorted(known)
        if known[ref].handling.delete is not Consent.NO
    ]
    if unit.policy.order is Order.STAGES:
        deletions = _staged(unit, going)
    elif unit.policy.release is not None:
        deletions = _released(unit, [one for one in going if not is_definition(one.ref.kind)])
    else:
        deletions = _waves(unit, [one for one in going if not is_definition(one.ref.kind)])
    steps = (*before, *deletions, *after)
    policy = msgspec.structs.replace(unit.policy, prunes=False)  # what stays has not left Git
    ending = msgspec.structs.replace(unit, digest=_digest((*before, *after)), policy=policy)
    return Plan.of(Fragment(units=(ending,), steps=steps, edges=tuple(link_chain(steps))))


def with_own(end: Plan, own: Iterable[Stale]) -> Plan:
    """The end of a unit, and behind it what says that it was there; nobody waits for its end."""
    unit = end.units[0]
    items = tuple(deletion_of(one, asks=False, gates=False) for one in own)
    if not items:
        return end
    steps = (*end.steps, _step(unit, OWN, (items,)))
    fragment = Fragment(units=end.units, steps=steps, edges=tuple(link_chain(steps)))
    return Plan.of(fragment)


def _digest(hooks: Iterable[Step]) -> str:
    """Covers what Git says of a unit's end, and not what is left of the unit.

    So a deletion that is taken up again is the same one, and knows that its hooks have run.
    """
    told = (f"{step.id} {step.digest}".encode() for step in hooks)
    return digest_bytes(DELETE.encode(), *told)


def _left_behind(wanted: Manifests, before: tuple[Step, ...]) -> list[Stale]:
    """The hooks that run before: they are the unit's objects, and go with the others.

    One whose name is made when the rollout begins goes at the end: nobody knows it yet. Hooks of a
    release go by their own policies alone.
    """
    if wanted.unit.policy.release is not None:
        return []
    waves = {one.ref: one.wave for one in wanted.before_deletion}
    items = (item for step in before for item in items_of(step) if not item.generates)
    return [Stale(item.ref, waves[item.ref], item.handling) for item in items]


def _parting(one: Stale, farewell: Propagation | None) -> Stale:
    """With what becomes of what it owns, where the unit says that of its end."""
    if farewell is None:
        return one
    handling = msgspec.structs.replace(one.handling, propagation=farewell)
    return msgspec.structs.replace(one, handling=handling)


def _deletion_of(one: Stale, *, gates: bool = True) -> Item:
    """Who asks before it is pruned asks before it is deleted, too."""
    asks = Consent.ASK in {one.handling.delete, one.handling.prune}
    return deletion_of(one, asks=asks, gates=gates)


def _hooks(
    unit: PlannedUnit, phase: str, manifests: tuple[Manifest, ...], budget: Budget
) -> tuple[Step, ...]:
    """All hooks of one end, at once: their waves do not count, and nothing holds them."""
    if unit.policy.release is not None:
        return _in_turn(unit, phase, manifests, budget)
    items = (make_item(one, phase, budget, held=False) for one in manifests)
    ordered = tuple(sorted(items, key=lambda item: (item.ref, item.digest)))
    if phase == BEFORE:
        ordered = tuple(map(_going_at_the_end, ordered))
    return (_step(unit, phase, (ordered,)),) if ordered else ()


def _in_turn(
    unit: PlannedUnit, phase: str, manifests: tuple[Manifest, ...], budget: Budget
) -> tuple[Step, ...]:
    """Hooks of a release, one after another."""
    ordered = by_weight(manifests)
    items = (make_item(one, phase, budget, held=False) for one in ordered)
    return tuple(_step(unit, phase, ((item,),), number) for number, item in enumerate(items, 1))


def _going_at_the_end(item: Item) -> Item:
    """A hook that no wave can name; it goes when everything else is gone."""
    if not item.generates or item.handling.delete is Consent.NO:
        return item
    policies = dict.fromkeys((*(item.hook or ()), HookPolicy.SUCCEEDED))
    return msgspec.structs.replace(item, hook=tuple(policies))


def _waves(unit: PlannedUnit, going: list[Stale]) -> tuple[Step, ...]:
    by_wave: dict[int, list[Item]] = {}
    for one in going:
        by_wave.setdefault(one.wave, []).append(_deletion_of(one))
    waves = sorted(by_wave, reverse=True)
    return tuple(_step(unit, DELETE, (tuple(by_wave[wave]),), wave) for wave in waves)


def _staged(unit: PlannedUnit, going: list[Stale]) -> tuple[Step, ...]:
    batches = reversed_batches(map(_deletion_of, going))
    return (_step(unit, DELETE, batches),) if batches else ()


def _released(unit: PlannedUnit, going: list[Stale]) -> tuple[Step, ...]:
    """In Helm's order of deletions: kind after kind, objects of a kind at once."""
    release = unit.policy.release
    waits = release is None or release.uninstall.waits
    ordered = sorted(going, key=lambda one: (kind_rank_back(one.ref.kind.name), one.ref))
    items = (_deletion_of(one, gates=waits) for one in ordered)
    kinds = groupby(items, key=lambda item: item.ref.kind.name)
    batches = tuple(tuple(batch) for _, batch in kinds)
    return (_step(unit, DELETE, batches),) if batches else ()


def _step(
    unit: PlannedUnit, phase: str, batches: tuple[Batch, ...], wave: int | None = None
) -> Step:
    """A step whose objects are all waited for, by whichever semantics."""
    return Step(
        id=step_id(unit, phase) if wave is None else step_id(unit, phase, wave),
        unit=unit.id,
        cluster=unit.cluster,
        digest=digest_step(batches),
        phase=phase,
        wave=wave or 0,
        batches=batches,
    )
