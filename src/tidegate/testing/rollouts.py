"""Running a plan on a world, and what it told."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

import msgspec

from tidegate.engine.drive import Driver
from tidegate.engine.site import Settings
from tidegate.flows.jq import Jq
from tidegate.flows.means import Craft
from tidegate.health.judge import Judge
from tidegate.model.event import Event, StepState, Told
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.plan import Plan
from tidegate.model.semantics import Semantics
from tidegate.world.line import Line
from tidegate.world.protocol import World

LONGEST = Ms(60 * MINUTE)
PER_ROLLOUT = 1_000_000
"""Tickets that are set aside for each rollout of a world."""


class Changes(TypedDict, total=False):
    """What a policy may say otherwise."""

    semantics: Semantics
    prunes: bool
    consents: bool
    carries_on: bool
    runs_hooks: bool


@dataclass(slots=True)
class Run:
    """What a rollout told, in order."""

    events: list[Event] = field(default_factory=list)
    result: str = ""

    @property
    def states(self) -> dict[str, StepState]:
        """The last state of each step."""
        steps = [event for event in self.events if event.told.startswith("step.")]
        return {event.step: StepState(event.told.removeprefix("step.")) for event in steps}

    def told(self, *kinds: Told) -> list[Event]:
        return [event for event in self.events if event.told in kinds]


def a_driver(world: World, plan: Plan, run: Run, settings: Settings, jq: Jq) -> Driver:
    """A rollout that is not begun."""
    return Driver(world, plan, Craft(Judge.of(()), jq=jq), settings, run.events.append)


def settings_of(number: int = 0) -> Settings:
    """Rollouts that share a world have numbers of their own."""
    return Settings(holder=f"rollout-{number}", first_ticket=1 + number * PER_ROLLOUT)


def governed(plan: Plan, **changes: Unpack[Changes]) -> Plan:
    """The plan with other policies for all its units."""
    units = tuple(
        msgspec.structs.replace(unit, policy=msgspec.structs.replace(unit.policy, **changes))
        for unit in plan.units
    )
    return msgspec.structs.replace(plan, units=units)


async def roll_out(world: World, plan: Plan, settings: Settings | None = None) -> Run:
    """Run a plan to its end; one that has no end is an AssertionError."""
    run = Run()
    line = Line(world)
    with closing(Jq()) as jq:
        await turn_all(line, [a_driver(line, plan, run, settings or settings_of(), jq)])
    run.result = run.events[-1].reason
    return run


async def turn_all(line: World, drivers: list[Driver]) -> None:
    """Turn several rollouts of one world until all are closed."""
    ends = Ms(line.now() + LONGEST)
    for driver in drivers:
        driver.open()
    while not all(driver.closed for driver in drivers):
        alarms = [driver.alarm for driver in drivers if not driver.closed]
        until = min([alarm for alarm in alarms if alarm is not None], default=ends)
        for fact in await line.wait(min(until, ends)):
            for driver in drivers:
                driver.take(fact)
        for driver in drivers:
            driver.ring()
        if line.now() >= ends:
            raise AssertionError(f"not at rest after {LONGEST} ms")
