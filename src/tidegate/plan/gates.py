"""Which objects hold what comes behind a unit, its own and those of others.

Objects of others are items that are awaited and never written. Only in the last step of a unit may
something be left out: what comes before it is needed for the rest of the unit. Where the last one
is ground itself, nothing is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from tidegate.model.depends_on import AwaitedState
from tidegate.model.graph import SpotKey
from tidegate.model.objects import Ref, Spot, identity
from tidegate.model.plan import Deed, Foreign, Item, PlannedUnit, Step, digest_step, items_of
from tidegate.model.policy import Gates
from tidegate.model.unit import Unit
from tidegate.plan.chains import step_id
from tidegate.plan.releases import OBJECTS

FIRST = "awaits"
"""What a unit waits for before anything of it is written."""
LAST = "checks"
"""What it is done with, where it has no objects of its own."""


DEEDS = {
    AwaitedState.READY: Deed.AWAIT,
    AwaitedState.PRESENT: Deed.AWAIT_PRESENT,
    AwaitedState.ABSENT: Deed.AWAIT_ABSENT,
}


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
        awaited = [_awaited(ref) for ref in others]
        return [*steps, await_step(unit, LAST, awaited)] if others else steps
    last = next((step for step in chain if step.stage == OBJECTS), chain[-1])
    batches = tuple(tuple(_gating(item, listed) for item in batch) for batch in last.batches)
    if others:
        batches = (*batches, tuple(_awaited(ref) for ref in others))
    digest = digest_step(batches, last.expands)
    relaxed = msgspec.structs.replace(last, batches=batches, digest=digest)
    return [relaxed if step is last else step for step in steps]


def hold_steps(
    steps: Iterable[Step], unit: PlannedUnit, foreign: Iterable[Foreign]
) -> Iterator[Step]:
    """The steps of a unit, before those with objects that wait for foreign ones a step that waits.

    What rescues has no time to wait.
    """
    asked: dict[Spot, list[Item]] = {}
    for one in foreign:
        asked.setdefault(one.after, []).append(_awaited(one.ref, one.state))
    for step in steps:
        spots = [Spot(step.cluster, item.ref) for item in items_of(step)]
        items = [item for spot in spots for item in asked.get(spot, ())]
        if items and not step.rescues:
            made = await_step(unit, FIRST, dict.fromkeys(items))
            name = f"{step.id}/{FIRST}"
            yield msgspec.structs.replace(made, id=name, phase=step.phase, wave=step.wave)
        yield step


def await_step(unit: PlannedUnit, stage: str, items: Iterable[Item]) -> Step:
    """A step that writes nothing."""
    batches = (tuple(items),)
    digest, name = digest_step(batches), step_id(unit, stage)
    return Step(
        id=name, unit=unit.id, cluster=unit.cluster, stage=stage, batches=batches, digest=digest
    )


def _gating(item: Item, listed: set[tuple[str, str, str, str]]) -> Item:
    gates = item.hook is not None or (item.gates and identity(item.ref) in listed)
    return item if item.gates == gates else msgspec.structs.replace(item, gates=gates)


def _awaited(ref: Ref, state: AwaitedState = AwaitedState.READY) -> Item:
    return Item(ref=ref, deed=DEEDS[state])


def awaited_by(unit: Unit, brought: Collection[SpotKey]) -> list[Item]:
    """What a unit says it depends on and nobody here brings, or what it wants to be gone."""
    cluster = unit.destination.cluster
    return [
        _awaited(one.ref, one.state)
        for one in unit.dependencies
        if one.ref is not None
        and (one.state is AwaitedState.ABSENT or (cluster, *identity(one.ref)) not in brought)
    ]
