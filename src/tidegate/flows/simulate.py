"""The same engine on a simulated cluster, by one set of rules or by several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.engine.drive import drive
from tidegate.errors import TidegateError
from tidegate.flows.sync import Rolling, Venue, make_driver, make_plan, own_craft
from tidegate.flows.units import Chosen
from tidegate.flows.wiring import Simulation, make_living
from tidegate.model.event import Event
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.model.semantics import Semantics

HOLDER = "simulation"


@dataclass(frozen=True, slots=True)
class Simulated:
    """What happened by one set of rules; times count from the start."""

    semantics: Semantics
    plan: Plan
    events: tuple[Event, ...]
    notes: tuple[TidegateError, ...] = ()

    @property
    def passed(self) -> bool:
        return bool(self.events) and self.events[-1].reason == "passed"

    @property
    def is_invalid(self) -> bool:
        """The cluster would not take the objects, and nothing was written."""
        return bool(self.events) and self.events[-1].reason == "invalid"


async def simulate(
    chosen: Chosen, engines: Iterable[Semantics], simulation: Simulation, *, until: Ms
) -> list[Simulated]:
    """Each on a new cluster that begins alike."""
    return [await _simulate(chosen, rules, simulation, until) for rules in engines]


async def _simulate(
    chosen: Chosen, rules: Semantics, simulation: Simulation, until: Ms
) -> Simulated:
    place = Venue(make_living(simulation), own_craft())
    world = place.world
    planned = await make_plan(chosen, world)
    plan = planned.plan
    events: list[Event] = []
    driver = make_driver(plan, place, Rolling(holder=HOLDER, semantics=rules), events.append)
    await drive(driver, until=Ms(world.now() + until))
    return Simulated(rules, plan, tuple(events), planned.notes)
