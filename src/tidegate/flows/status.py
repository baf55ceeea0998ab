"""How a unit stands in the cluster: each object as wanted or not, and how well it is."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidegate.flows.preview import Preview, preview_with_lives
from tidegate.flows.sync import Target, Venue, open_target
from tidegate.flows.units import Chosen
from tidegate.model.change import Fate
from tidegate.model.objects import Json, Ref
from tidegate.model.plan import Item, Plan, Step
from tidegate.model.verdict import Health, Verdict
from tidegate.world.ask import ask
from tidegate.world.calls import Local

Body = dict[str, Json]
MISSING = Verdict(Health.MISSING, "Missing", "it is not there")


@dataclass(frozen=True, slots=True)
class Status:
    """One object: whether it is as Git wants it, and its verdict."""

    ref: Ref
    wave: int
    is_synced: bool
    verdict: Verdict


async def read_status(chosen: Chosen, target: Target) -> list[Status]:
    """All objects of a unit, in the order of the plan."""
    async with open_target(target) as place:
        found, lives = await preview_with_lives(chosen, place.world)
        verdicts = await _judge_all(found.plan, lives, place)
    return [
        Status(item.ref, step.wave, _is_synced(found, item.ref), verdicts.get(item.ref, MISSING))
        for step in found.plan.steps
        for item in _kept_items(step)
    ]


async def _judge_all(plan: Plan, lives: dict[Ref, bytes], place: Venue) -> dict[Ref, Verdict]:
    """A verdict for each object that lives; those that scripts judge are asked for together."""
    craft, now = place.craft, place.world.now()
    units = {unit.name: unit for unit in plan.units}
    verdicts: dict[Ref, Verdict] = {}
    scripted: list[tuple[Ref, Body, Local]] = []
    for step in plan.steps:
        for ref in (item.ref for item in _kept_items(step) if item.ref in lives):
            body: Body = msgspec.json.decode(lives[ref])
            work = craft.script(units[step.unit], body, now)
            if work is None:
                verdicts[ref] = craft.judge(units[step.unit], body, now)
            else:
                scripted.append((ref, body, work))
    outcomes = await ask(place.world, *(work for *_, work in scripted))
    for (ref, body, _), outcome in zip(scripted, outcomes, strict=True):
        verdicts[ref] = craft.scripted(outcome, body)
    return verdicts


def _kept_items(step: Step) -> list[Item]:
    """The objects of a step that stay; hooks are run, and not kept."""
    return [item for batch in step.batches for item in batch if item.hook is None]


def _is_synced(found: Preview, ref: Ref) -> bool:
    return found.differences[ref].deed is Fate.KEEP
