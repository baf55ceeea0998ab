"""How a unit stands in the cluster: each object as wanted or not, and how well it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.dialect.units import is_own_kind
from tidegate.flows.discover import Family
from tidegate.flows.preview import preview_with_lives
from tidegate.flows.session import Session
from tidegate.model.change import Fate
from tidegate.model.objects import Json, Ref, Spot
from tidegate.model.plan import Plan, PlannedUnit, Step, own_items_of
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Health, Verdict
from tidegate.world.ask import ask
from tidegate.world.calls import Local

Body = dict[str, Json]
MISSING = Verdict(Health.MISSING, "Missing", "it is not there")
EMPTY = Verdict(Health.HEALTHY, "Empty", "it brings nothing")
BADNESS = (
    *(Health.HEALTHY, Health.SUSPENDED, Health.PROGRESSING),
    *(Health.UNKNOWN, Health.MISSING, Health.DEGRADED),
)


class ObjectStatus(msgspec.Struct, frozen=True):
    """One object: whether it is as Git wants it, and its verdict."""

    ref: Ref
    wave: int
    is_synced: bool
    verdict: Verdict
    cluster: str = ""
    unit: UnitId | None = None
    leaves: bool = False
    """Git has it no longer."""


class PlanStatus(msgspec.Struct, frozen=True):
    """A plan, with the deletions that are due, and how its objects stand, in its order."""

    plan: Plan
    objects: list[ObjectStatus]


async def read_status(families: Sequence[Family], session: Session) -> list[ObjectStatus]:
    """All objects of units, in the order of the plan."""
    return (await read_plan_status(families, session)).objects


async def read_plan_status(families: Sequence[Family], session: Session) -> PlanStatus:
    """The same, and the plan, which knows the hooks, too."""
    found, lives = await preview_with_lives(families, session)
    verdicts = await _judge_all(found.plan, lives, session)
    _judge_units(found.plan, verdicts)
    objects = [
        ObjectStatus(
            spot.ref,
            step.wave,
            found.differences[spot].deed is Fate.KEEP,
            verdicts.get(spot, MISSING),
            spot.cluster,
            step.unit,
            found.differences[spot].deed is Fate.PRUNE,
        )
        for step in found.plan.steps
        for spot in _kept(step)
    ]
    return PlanStatus(found.plan, objects)


async def _judge_all(plan: Plan, lives: dict[Spot, bytes], session: Session) -> dict[Spot, Verdict]:
    """A verdict for each object that lives."""
    units = {unit.id: unit for unit in plan.units}
    living = (
        (spot, units[step.unit], msgspec.json.decode(lives[spot]))
        for step in plan.steps
        for spot in _kept(step)
        if spot in lives
    )
    return await judge_bodies(living, session)


async def judge_bodies(
    living: Iterable[tuple[Spot, PlannedUnit, Body]], session: Session
) -> dict[Spot, Verdict]:
    """A verdict for each, by the rules of its unit; what scripts judge is asked for together."""
    craft, now = session.craft, session.world.now()
    verdicts: dict[Spot, Verdict] = {}
    scripted: list[tuple[Spot, Body, Local]] = []
    for spot, unit, body in living:
        work = craft.script(unit, body, now)
        if work is None:
            verdicts[spot] = craft.judge(unit, body, now)
        else:
            scripted.append((spot, body, work))
    outcomes = await ask(session.world, *(work for *_, work in scripted))
    for (spot, body, work), outcome in zip(scripted, outcomes, strict=True):
        verdicts[spot] = craft.scripted(work, outcome, body)
    return verdicts


def _judge_units(plan: Plan, verdicts: dict[Spot, Verdict]) -> None:
    """A unit's own object is as well as what the unit brings: nobody else writes its status."""
    units = {unit.id: unit for unit in plan.units}
    inside: dict[UnitId, list[Spot]] = {}
    for step in plan.steps:
        inside.setdefault(step.unit, []).extend(_kept(step))
    # What a unit brings is planned behind it, so that the last ones are known first.
    for step in reversed(plan.steps):
        for spot in _kept(step):
            ref = spot.ref
            name = UnitId(ref.kind.name, step.cluster, ref.namespace, ref.name)
            if name in units and is_own_kind(ref.kind) and spot in verdicts:
                worst = worst_of(verdicts.get(one, MISSING) for one in inside.get(name, ()))
                verdicts[spot] = msgspec.structs.replace(worst, sentence="what it brings is so")


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """How well all of it is together: as the worst."""
    return max(verdicts, key=lambda one: BADNESS.index(one.health), default=EMPTY)


def _kept(step: Step) -> list[Spot]:
    """The objects of a step that stay; hooks are run, and not kept."""
    return [Spot(step.cluster, item.ref) for item in own_items_of(step) if item.hook is None]
