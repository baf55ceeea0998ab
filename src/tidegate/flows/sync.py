"""Roll out what the user points at, on whichever world is behind the door."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tidegate.engine.drive import Driver
from tidegate.engine.reach.preflight import Preflight
from tidegate.engine.site import Settings
from tidegate.errors import (
    ClusterError,
    ConfigError,
    PlanError,
    RenderError,
    TidegateError,
)
from tidegate.flows.lua import lua_workers
from tidegate.flows.means import Craft
from tidegate.flows.pace import Paced
from tidegate.flows.rendering import Rendered
from tidegate.flows.rendering.outcome import notes_of
from tidegate.flows.sharing import refuse_shared
from tidegate.flows.units import Chosen, read_chosen
from tidegate.flows.wiring import Simulation, Worker, known_to, make_living, open_world
from tidegate.health.budget import budget
from tidegate.health.judge import Judge
from tidegate.health.lua import NO_RULES, LuaRules, read_lua_rules
from tidegate.knowledge.catalogue import Catalogue
from tidegate.model.event import Event
from tidegate.model.plan import Plan
from tidegate.model.semantics import TIDEGATE, Semantics
from tidegate.plan.build import build_plan
from tidegate.plan.selection import select
from tidegate.world.line import Line
from tidegate.world.protocol import World

NOT_THERE = frozenset(
    {"config.none", "cluster.unreachable", "cluster.unknown-host", "cluster.timeout"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a rollout takes place: a cluster of a kubeconfig, or a simulated one."""

    kubeconfig: str | None = None
    context: str | None = None
    simulation: Simulation | None = None
    health_rules: Path | None = None
    """Lua, in the form of Argo CD's settings."""


@dataclass(frozen=True, slots=True)
class Venue:
    """A world, and how what lives there is judged."""

    world: World
    craft: Craft

    @property
    def known(self) -> Catalogue:
        """What is known of kinds there."""
        return self.craft.rules.known


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """How a rollout is run."""

    semantics: Semantics = TIDEGATE
    carries_on: bool = False
    prunes: bool = False
    consents: bool = False
    """What asks first may be pruned and deleted."""
    runs_hooks: bool = False
    preflight: Preflight = Preflight.LOCAL
    holder: str = ""
    pace: float | None = None
    """Seconds of the world's time that pass in one of ours; None does not wait."""

    @property
    def settings(self) -> Settings:
        return Settings(
            holder=self.holder or own_name(),
            semantics=self.semantics,
            carries_on=self.carries_on,
            prunes=self.prunes,
            consents=self.consents,
            runs_hooks=self.runs_hooks,
            preflight=self.preflight,
        )


@asynccontextmanager
async def open_target(target: Target) -> AsyncIterator[Venue]:
    """The world of a target, and how its objects are judged."""
    async with AsyncExitStack() as stack:
        scripts, workers = NO_RULES, dict[str, Worker]()
        if target.health_rules is not None:
            text = target.health_rules.read_bytes()
            scripts = read_lua_rules(text, str(target.health_rules))
            workers["lua"] = await stack.enter_async_context(lua_workers())
        world = await stack.enter_async_context(_open_world(target, workers))
        yield Venue(world, own_craft(scripts, target.simulation))


@asynccontextmanager
async def _open_world(target: Target, workers: dict[str, Worker]) -> AsyncIterator[World]:
    """A cluster that does not answer is an error that offers another."""
    if target.simulation is not None:
        yield make_living(target.simulation, workers)
        return
    try:
        async with open_world(
            kubeconfig=target.kubeconfig, context=target.context, workers=workers
        ) as world:
            yield world
    except (ClusterError, ConfigError) as error:
        if error.code in NOT_THERE:
            offer = "`tidegate sync --sandbox` needs no cluster"
            error.hint = f"{error.hint}; {offer}" if error.hint else offer
        raise


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what it was made of."""

    what: str
    plan: Plan
    rendered: Rendered

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        """What is not certain; that there is nothing at all is rarely meant."""
        notes = notes_of(self.rendered)
        if self.rendered.documents or notes:
            return notes
        problem = f"`{self.what}` has no objects"
        hint = "look whether it is the right directory"
        return (RenderError("render.nothing", problem, hint=hint),)


async def make_plan(chosen: Chosen, world: World, *, prunes: bool = False) -> Planned:
    """The plan of what the user points at, and of that only what is chosen.

    `prunes`: what is the unit's and not in the plan is to go, so the plan must be all of it.
    """
    if prunes and chosen.resources:
        problem = "only a whole unit can be pruned, and this is a part of one"
        raise PlanError("plan.part", problem, hint="`--prune` does not go with `--resource`")
    read = await read_chosen(chosen, world)
    plan = build_plan([read.unit], budget=budget)
    if chosen.resources:
        plan = select(plan, chosen.resources)
    await refuse_shared(plan, world)
    return Planned(chosen.wanted.what, plan, read.rendered)


def make_driver(
    plan: Plan, place: Venue, rolling: Rolling, emit: Callable[[Event], None]
) -> Driver:
    """A rollout that is not begun."""
    # A line waits until there is news; the pace is outside of it, so that a stop is heard at once.
    world = Paced(Line(place.world), rolling.pace)
    return Driver(world, plan, place.craft, rolling.settings, emit)


def own_craft(scripts: LuaRules = NO_RULES, simulation: Simulation | None = None) -> Craft:
    """Judgement with everything that is known of operators."""
    return Craft(Judge.of(known_to(simulation).rows), scripts)


def own_name() -> str:
    """Names this process among those that may hold a unit."""
    return f"{socket.gethostname()}-{os.getpid()}"
