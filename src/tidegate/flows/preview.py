"""What a rollout would do, step by step, against what lives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

import msgspec

from tidegate.engine.means import Body
from tidegate.engine.reach.writing import read_body
from tidegate.errors import Place, TidegateError
from tidegate.flows.comparing import find_difference, is_replaced
from tidegate.flows.journal import read_journal
from tidegate.flows.leaving import with_prunes
from tidegate.flows.sync import Target, make_plan, open_target
from tidegate.flows.units import Chosen
from tidegate.model.change import Difference, Fate
from tidegate.model.objects import Kind, Live, Ref
from tidegate.model.plan import Deed, Item, Plan, PlannedUnit
from tidegate.model.reading import text
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Forbidden, Listed, NotServed, Outcome, is_refusal
from tidegate.world.refusals import refusal_error


class Pruning(Enum):
    """What becomes of objects that Git no longer has."""

    NONE = "none"
    ASKING = "asking"
    """What asks for consent stays."""
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan, what it would change of what lives, and what is not certain about it."""

    plan: Plan
    differences: dict[Ref, Difference]
    notes: tuple[TidegateError, ...] = ()

    @property
    def has_changes(self) -> bool:
        return any(one.deed is not Fate.KEEP for one in self.differences.values())


async def preview_on(chosen: Chosen, target: Target, pruning: Pruning = Pruning.NONE) -> Preview:
    """The same on the cluster of a target."""
    async with open_target(target) as place:
        return await preview(chosen, place.world, pruning)


async def preview(chosen: Chosen, world: Exchange, pruning: Pruning = Pruning.NONE) -> Preview:
    """Plan what the user points at, and compare it with what is there."""
    found, _ = await preview_with_lives(chosen, world, pruning)
    return found


async def preview_with_lives(
    chosen: Chosen, world: Exchange, pruning: Pruning = Pruning.NONE
) -> tuple[Preview, dict[Ref, bytes]]:
    """The same, with the objects that live."""
    planned = await make_plan(chosen, world, prunes=pruning is not Pruning.NONE)
    plan = planned.plan
    if pruning is not Pruning.NONE:
        plan = await with_prunes(plan, world)
    units = {unit.name: unit for unit in plan.units}
    owners = {
        item.ref: (item, units[step.unit])
        for step in plan.steps
        for batch in step.batches
        for item in batch
    }
    lives = await _lives(world, owners)
    bodies = {ref: _decode(lives[ref]) for ref in owners if ref in lives}
    replaced = {ref for ref, (item, _) in owners.items() if is_replaced(item, bodies.get(ref))}
    seals = await _seals([owners[ref] for ref in replaced & bodies.keys()], bodies, world)
    found = {
        ref: _fate_of_leaving(item, pruning)
        if item.deed is Deed.DELETE
        else find_difference(unit, item, bodies.get(ref), seals.get(ref, ""))
        for ref, (item, unit) in owners.items()
    }
    return Preview(plan, found, planned.notes), lives


def _fate_of_leaving(item: Item, pruning: Pruning) -> Difference:
    stays = item.asks and pruning is not Pruning.CONFIRMED
    return Difference(deed=Fate.KEEP if stays else Fate.PRUNE)


def _decode(live: bytes) -> Body:
    body: Body = msgspec.json.decode(live)
    return body


async def _seals(
    replaced: list[tuple[Item, PlannedUnit]], bodies: dict[Ref, Body], world: Exchange
) -> dict[Ref, str]:
    """What was recorded when these very texts were put there; of others nothing is needed."""
    units = dict.fromkeys(unit for _, unit in replaced)
    journals = {unit: (await read_journal(unit, world)).journal.entries for unit in units}
    seals: dict[Ref, str] = {}
    for item, unit in replaced:
        known, uid = journals[unit].get(item.ref), text(bodies[item.ref], "metadata", "uid")
        if known is not None and (known.digest, known.uid) == (item.digest, uid):
            seals[item.ref] = known.seal
    return seals


async def _lives(world: Exchange, refs: Collection[Ref]) -> dict[Ref, bytes]:
    """Those of these objects that live; of a kind that is not served, none does.

    Whoever may not see the whole cluster is content with the namespaces of these.
    """
    homes = dict[Kind, dict[str, None]]()
    for ref in refs:
        homes.setdefault(ref.kind, {})[ref.namespace] = None
    whole = [Selection(kind) for kind in homes]
    pages = list(zip(whole, await ask(world, *map(List, whole)), strict=True))
    closed = [part.kind for part, page in pages if isinstance(page, Forbidden)]
    parts = [Selection(kind, home) for kind in closed for home in homes[kind]]
    pages = [one for one in pages if one[0].kind not in closed]
    pages += zip(parts, await ask(world, *map(List, parts)), strict=True)
    found = (live for part, page in pages for live in _items(page, part.kind))
    return {live.ref: msgspec.json.encode(read_body(live)) for live in found if live.ref in refs}


def _items(page: Outcome, kind: Kind) -> tuple[Live, ...]:
    """Raises what keeps us from looking: what is not seen is not missing."""
    if is_refusal(page) and not isinstance(page, NotServed):
        raise refusal_error(page, "looking at what lives", where=Place(str(kind)))
    return page.items if isinstance(page, Listed) else ()
