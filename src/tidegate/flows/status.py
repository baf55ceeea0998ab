"""How a unit stands in the cluster: each object as wanted or not, and how well it is."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidegate.flows.preview import Preview, preview_with_lives
from tidegate.flows.sync import Target, open_target
from tidegate.flows.units import Chosen
from tidegate.model.change import Fate
from tidegate.model.objects import Json, Ref
from tidegate.model.verdict import Health, Verdict

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
        now = place.world.now()
    craft = place.craft
    statuses = []
    for step in found.plan.steps:
        unit = next(one for one in found.plan.units if one.name == step.unit)
        for item in (item for batch in step.batches for item in batch if item.hook is None):
            body = lives.get(item.ref)
            verdict = MISSING
            if body is not None:
                parsed: dict[str, Json] = msgspec.json.decode(body)
                verdict = craft.judge(unit, parsed, now)
            statuses.append(Status(item.ref, step.wave, _is_synced(found, item.ref), verdict))
    return statuses


def _is_synced(found: Preview, ref: Ref) -> bool:
    return found.differences[ref].deed is Fate.KEEP
