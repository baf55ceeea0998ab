"""How a unit stands in the cluster: each object as wanted or not, and how well it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tidegate.flows.discover import Family
from tidegate.flows.preview import preview_with_lives
from tidegate.flows.session import Session
from tidegate.model.change import Fate
from tidegate.model.objects import Json, Ref, Spot
from tidegate.model.plan import Plan, Step, items_of
from tidegate.model.verdict import Health, Verdict
from tidegate.world.ask import ask
from tidegate.world.calls import Local

Body = dict[str, Json]
MISSING = Verdict(Health.MISSING, "Missing", "it is not there")


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """One object: whether it is as Git wants it, and its verdict."""

    ref: Ref
    wave: int
    is_synced: bool
    verdict: Verdict
    cluster: str = ""


async def read_status(families: Sequence[Family], session: Session) -> list[ObjectStatus]:
    """All objects of units, in the order of the plan."""
    found, lives = await preview_with_lives(families, session)
    verdicts = await _judge_all(found.plan, lives, session)
    return [
        ObjectStatus(
            spot.ref,
            step.wave,
            found.differences[spot].deed is Fate.KEEP,
            verdicts.get(spot, MISSING),
            spot.cluster,
        )
        for step in found.plan.steps
        for spot in _kept(step)
    ]


async def _judge_all(plan: Plan, lives: dict[Spot, bytes], session: Session) -> dict[Spot, Verdict]:
    """A verdict for each object that lives; those that scripts judge are asked for together."""
    craft, now = session.craft, session.world.now()
    units = {unit.id: unit for unit in plan.units}
    verdicts: dict[Spot, Verdict] = {}
    scripted: list[tuple[Spot, Body, Local]] = []
    for step in plan.steps:
        for spot in (spot for spot in _kept(step) if spot in lives):
            body: Body = msgspec.json.decode(lives[spot])
            work = craft.script(units[step.unit], body, now)
            if work is None:
                verdicts[spot] = craft.judge(units[step.unit], body, now)
            else:
                scripted.append((spot, body, work))
    outcomes = await ask(session.world, *(work for *_, work in scripted))
    for (spot, body, _), outcome in zip(scripted, outcomes, strict=True):
        verdicts[spot] = craft.scripted(outcome, body)
    return verdicts


def _kept(step: Step) -> list[Spot]:
    """The objects of a step that stay; hooks are run, and not kept."""
    return [Spot(step.cluster, item.ref) for item in items_of(step) if item.hook is None]
