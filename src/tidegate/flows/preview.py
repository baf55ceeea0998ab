"""What a rollout would do, step by step, against what lives."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidegate.errors import TidegateError
from tidegate.flows.sync import Target, make_plan, open_target
from tidegate.flows.units import Chosen
from tidegate.model.change import Difference, Fate
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.plan import Plan, PlannedUnit
from tidegate.plan.diff.compare import compare
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection
from tidegate.world.facts import Listed
from tidegate.world.line import Line
from tidegate.world.protocol import World


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan, what it would change of what lives, and what is not certain about it."""

    plan: Plan
    differences: dict[Ref, Difference]
    notes: tuple[TidegateError, ...] = ()

    @property
    def has_changes(self) -> bool:
        return any(one.deed is not Fate.KEEP for one in self.differences.values())


async def preview_on(chosen: Chosen, target: Target) -> Preview:
    """The same on the cluster of a target."""
    async with open_target(target) as place:
        return await preview(chosen, place.world)


async def preview(chosen: Chosen, world: World) -> Preview:
    """Plan what the user points at, and compare it with what is there."""
    found, _ = await preview_with_lives(chosen, world)
    return found


async def preview_with_lives(chosen: Chosen, world: World) -> tuple[Preview, dict[Ref, bytes]]:
    """The same, with the objects that live."""
    planned = await make_plan(chosen, world)
    plan = planned.plan
    units = {unit.name: unit for unit in plan.units}
    owners = {
        item.ref: (item.body, units[step.unit])
        for step in plan.steps
        for batch in step.batches
        for item in batch
    }
    lives = await _lives(world, dict.fromkeys(ref.kind for ref in owners))
    found = {ref: _compare(body, unit, lives.get(ref)) for ref, (body, unit) in owners.items()}
    return Preview(plan, found, planned.notes), lives


async def _lives(world: World, kinds: dict[Kind, None]) -> dict[Ref, bytes]:
    """Everything of these kinds; a kind that is not served has nothing."""
    pages = await ask(Line(world), *(List(Selection(kind)) for kind in kinds))
    lives = (live for page in pages if isinstance(page, Listed) for live in page.items)
    return {live.ref: live.body for live in lives}


def _compare(body: bytes, unit: PlannedUnit, live: bytes | None) -> Difference:
    wanted: dict[str, Json] = msgspec.json.decode(body)
    found: dict[str, Json] | None = msgspec.json.decode(live) if live is not None else None
    return compare(wanted, found, manager=unit.manager)
