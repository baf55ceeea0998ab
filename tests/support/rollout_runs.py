"""Runs of a plan on a World, and their events."""

from __future__ import annotations

from contextlib import closing
from typing import TypedDict, Unpack

import msgspec

from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.engine.context import RolloutSettings
from tidegate.engine.driver import Driver, drive
from tidegate.health.judge import Judge
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import Event, EventType, StepState
from tidegate.model.rollouts.rollout_progress import STEP_STATES
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.semantics import Semantics
from tidegate.workers.jq import Jq
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.protocol import World
from tidegate.world.resilient import ResilientWorld

MAX_DURATION = Ms(60 * MINUTE)


class PolicyChanges(TypedDict, total=False):
    """What a policy may say otherwise."""

    semantics: Semantics
    prune: bool
    confirmed: bool
    continue_on_failure: bool
    runs_hooks: bool
    delete_contents: bool
    fail_on_shared_resource: bool


class Run(msgspec.Struct):
    """The events of a rollout, in order."""

    events: list[Event] = msgspec.field(default_factory=list)
    result: str = ""

    @property
    def states(self) -> dict[str, StepState]:
        """The last state of each step."""
        return {
            event.step: STEP_STATES[event.type]
            for event in self.events
            if event.type in STEP_STATES
        }

    def events_of(self, *kinds: EventType) -> list[Event]:
        return [event for event in self.events if event.type in kinds]


def make_driver(
    world: Dispatcher, plan: Plan, run: Run, settings: RolloutSettings, jq: Jq
) -> Driver:
    """A rollout that is not begun."""
    return Driver(
        world, plan, DefaultEvaluator(Judge.from_rows(()), jq=jq), settings, run.events.append
    )


def make_settings(number: int = 0) -> RolloutSettings:
    """Rollouts that share a world have names of their own."""
    return RolloutSettings(holder=f"rollout-{number}")


def with_policy(plan: Plan, **changes: Unpack[PolicyChanges]) -> Plan:
    """The plan with other policies for all its units."""
    units = tuple(
        msgspec.structs.replace(unit, policy=msgspec.structs.replace(unit.policy, **changes))
        for unit in plan.units
    )
    return msgspec.structs.replace(plan, units=units)


async def roll_out(world: World, plan: Plan, settings: RolloutSettings | None = None) -> Run:
    """Run a plan to its end; one that has no end is an AssertionError."""
    run, dispatcher = Run(), Dispatcher(ResilientWorld(world))
    ends = Ms(world.now() + MAX_DURATION)
    with closing(Jq()) as jq:
        driver = make_driver(dispatcher, plan, run, settings or make_settings(), jq)
        await drive(driver, until=ends)
    if world.now() >= ends:
        raise AssertionError(f"not at rest after {MAX_DURATION} ms")
    run.result = run.events[-1].reason
    return run
