"""Which objects hold what comes behind a unit, its own and those of others.

Objects of others are items that are awaited and never written. Only in the last step of a unit may
something be left out: what comes before it is needed for the rest of the unit. Where the last one
is ground itself, nothing is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from tidegate.model.objects import Ref, identity
from tidegate.model.plan import Deed, Item, PlannedUnit, Step, digest_step, items_of
from tidegate.model.policy import Gates
from tidegate.plan.chains import step_id
from tidegate.plan.releases import OBJECTS

FIRST = "awaits"
"""What a unit waits for before anything of it is written."""
LAST = "checks"
"""What it is done with, where it has no objects of its own."""


def set_gates(
    steps: list[Step], unit: PlannedUnit, children: Collection[tuple[str, str, str, str]] = ()
) -> list[Step]:
    """The steps, the last one with the gates that the policy asks for.

    Own objects of `children` are not asked how they are: their rollouts tell it.
    """
    policy = unit.policy
    if policy.gates is Gates.ALL:
        return steps
    listed = {identity(ref) for ref in policy.listed} if policy.gates is Gates.LISTED else set()
    own = {identity(item.ref) for step in steps for item in items_of(step)}
    others = [ref for ref in policy.listed if identity(ref) in listed - own - {*children}]
    chain = [step for step in steps if not step.rescues]
    if not chain or chain[-1].ground:
        return [*steps, await_step(unit, LAST, others)] if others else steps
    last = next((step for step in chain if step.stage == OBJECTS), chain[-1])
    batches = tuple(tuple(_gating(item, listed) for item in batch) for batch in last.batches)
    if others:
        batches = (*batches, tuple(map(_awaited, others)))
    digest = digest_step(batches, last.expands)
    relaxed = msgspec.structs.replace(last, batches=batches, digest=digest)
    return [relaxed if step is last else step for step in steps]


def await_step(unit: PlannedUnit, stage: str, refs: Iterable[Ref]) -> Step:
    """A step that writes nothing."""
    batches = (tuple(map(_awaited, refs)),)
    digest, name = digest_step(batches), step_id(unit, stage)
    return Step(
        id=name, unit=unit.id, cluster=unit.cluster, stage=stage, batches=batches, digest=digest
    )


def _gating(item: Item, listed: set[tuple[str, str, str, str]]) -> Item:
    gates = item.hook is not None or (item.gates and identity(item.ref) in listed)
    return item if item.gates == gates else msgspec.structs.replace(item, gates=gates)


def _awaited(ref: Ref) -> Item:
    return Item(ref=ref, deed=Deed.AWAIT)
