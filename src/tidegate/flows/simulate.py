"""The same engine on a simulated cluster, by one set of rules or by several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from tidegate.engine.drive import drive
from tidegate.errors import TidegateError
from tidegate.flows.evidence import Background, inquire
from tidegate.flows.sync import Rolling, Target, Venue, make_driver, make_plan, open_target
from tidegate.flows.units import Chosen
from tidegate.model.event import Event, Told
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan
from tidegate.model.semantics import Semantics
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.discretion import Discretion
from tidegate.report.rollout.evidence import Evidence

HOLDER = "simulation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What happened by one set of rules.

    `evidence`: what is known of what failed. `unwaited`: objects that were applied, become ready
    some time later, and were not waited for.
    """

    semantics: Semantics
    plan: Plan
    events: tuple[Event, ...]
    notes: tuple[TidegateError, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    unwaited: tuple[Ref, ...] = ()

    @property
    def passed(self) -> bool:
        return bool(self.events) and self.events[-1].reason == "passed"

    @property
    def is_invalid(self) -> bool:
        """The cluster would not take the objects, and nothing was written."""
        return bool(self.events) and self.events[-1].reason == "invalid"


async def simulate(
    chosen: Chosen, engines: Iterable[Semantics], target: Target, *, until: Ms
) -> list[Simulated]:
    """Each on a new cluster that begins alike."""
    found = []
    for rules in engines:
        async with open_target(target) as place:
            found.append(await _simulate(chosen, rules, place, until=until))
    return found


async def _simulate(chosen: Chosen, rules: Semantics, place: Venue, *, until: Ms) -> Simulated:
    world = place.world
    planned = await make_plan(chosen, world)
    plan = planned.plan
    discretion, course = Discretion.of(plan), Course(world.now())
    course.expect(plan)
    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(discretion.hide_in(event))
        course.take(events[-1])

    driver = make_driver(plan, place, Rolling(holder=HOLDER, semantics=rules), hear)
    await drive(driver, until=Ms(world.now() + until))
    written = {event.ref for event in events if event.told is Told.OBJECT_WRITTEN}
    background = Background(plan=plan, catalogue=place.known, discretion=discretion)
    return Simulated(
        semantics=rules,
        plan=plan,
        events=tuple(events),
        notes=planned.notes,
        evidence=await inquire(world, course, background),
        unwaited=tuple(ref for ref in _unchecked(plan, rules, place) if ref in written),
    )


def _unchecked(plan: Plan, rules: Semantics, place: Venue) -> Iterator[Ref]:
    """Objects of operators that these rules have no check for, where something comes behind."""
    craft, now = place.craft, place.world.now()
    units = {unit.name: unit for unit in plan.units}
    for step in plan.steps if not rules.falls_back else ():
        for item in (item for batch in step.batches for item in batch if not step.last):
            row = place.known.row_of(item.ref.kind)
            if row is None or not row.ready_when:
                continue
            unit, body = units[step.unit], msgspec.json.decode(item.body)
            if craft.script(unit, body, now) is None and not craft.judge(unit, body, now).checked:
                yield item.ref
