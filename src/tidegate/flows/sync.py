"""Roll out what the user points at, on whichever world is behind the door."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tidegate.engine.drive import Driver
from tidegate.engine.reach.preflight import Preflight
from tidegate.engine.site import Settings
from tidegate.errors import ClusterError, TidegateError
from tidegate.flows.means import Craft
from tidegate.flows.rendering import Rendered
from tidegate.flows.rendering.outcome import notes_of
from tidegate.flows.units import Chosen, read_chosen
from tidegate.flows.wiring import Simulation, make_living, open_world
from tidegate.health.budget import budget
from tidegate.health.judge import Judge
from tidegate.model.event import Event
from tidegate.model.plan import Plan
from tidegate.model.semantics import TIDEGATE, Semantics
from tidegate.plan.build import build_plan
from tidegate.world.line import Line
from tidegate.world.protocol import World

NOT_THERE = frozenset({"cluster.unreachable", "cluster.unknown-host", "cluster.timeout"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a rollout takes place: a cluster of a kubeconfig, or a simulated one."""

    kubeconfig: str | None = None
    context: str | None = None
    simulation: Simulation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """How a rollout is run."""

    semantics: Semantics = TIDEGATE
    carries_on: bool = False
    prunes: bool = False
    runs_hooks: bool = False
    preflight: Preflight = Preflight.LOCAL
    holder: str = ""

    @property
    def settings(self) -> Settings:
        return Settings(
            holder=self.holder or own_name(),
            semantics=self.semantics,
            carries_on=self.carries_on,
            prunes=self.prunes,
            runs_hooks=self.runs_hooks,
            preflight=self.preflight,
        )


@asynccontextmanager
async def open_target(target: Target) -> AsyncIterator[World]:
    """The world of a target. A cluster that does not answer is an error that offers another."""
    if target.simulation is not None:
        yield make_living(target.simulation)
        return
    try:
        async with open_world(kubeconfig=target.kubeconfig, context=target.context) as world:
            yield world
    except ClusterError as error:
        if error.code in NOT_THERE:
            error.hint = f"{error.hint}; or try `--sandbox`".removeprefix("; ")
        raise


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what it was made of."""

    plan: Plan
    rendered: Rendered

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        return notes_of(self.rendered)


async def make_plan(chosen: Chosen, world: World) -> Planned:
    """The plan of what the user points at."""
    read = await read_chosen(chosen, world)
    return Planned(build_plan([read.unit], budget=budget), read.rendered)


def make_driver(
    plan: Plan, world: World, rolling: Rolling, emit: Callable[[Event], None]
) -> Driver:
    """A rollout that is not begun."""
    return Driver(Line(world), plan, own_craft(), rolling.settings, emit)


def own_craft() -> Craft:
    """Judgement with everything that is known of operators."""
    from tidegate.sandbox.operators.reader import builtin_rows  # noqa: PLC0415 - only when used

    return Craft(Judge.of(builtin_rows()))


def own_name() -> str:
    """Names this process among those that may hold a unit."""
    return f"{socket.gethostname()}-{os.getpid()}"
