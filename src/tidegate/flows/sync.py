"""Roll out what the user points at, on whichever world is behind the door."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.engine.drive import Driver, drive
from tidegate.engine.site import Settings
from tidegate.flows.means import Craft
from tidegate.flows.units import Chosen, read_chosen
from tidegate.health.budget import budget
from tidegate.health.judge import Judge
from tidegate.model.event import Event
from tidegate.model.plan import Plan
from tidegate.model.semantics import TIDEGATE, Semantics
from tidegate.plan.build import build_plan
from tidegate.world.line import Line
from tidegate.world.protocol import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """How a rollout is run."""

    semantics: Semantics = TIDEGATE
    carries_on: bool = False
    holder: str = ""


async def make_plan(chosen: Chosen, world: World) -> Plan:
    """The plan of what the user points at."""
    return build_plan([await read_chosen(chosen, world)], budget=budget)


async def sync(
    chosen: Chosen, world: World, rolling: Rolling, emit: Callable[[Event], None]
) -> str:
    """Roll it out; how it ended, in a word."""
    plan = await make_plan(chosen, world)
    settings = Settings(
        holder=rolling.holder or own_name(),
        semantics=rolling.semantics,
        carries_on=rolling.carries_on,
    )
    return await drive(Driver(Line(world), plan, own_craft(), settings, emit))


def own_craft() -> Craft:
    """Judgement with everything that is known of operators."""
    from tidegate.sandbox.operators.reader import builtin_rows  # noqa: PLC0415 - only when used

    return Craft(Judge.of(builtin_rows()))


def own_name() -> str:
    """Names this process among those that may hold a unit."""
    return f"{socket.gethostname()}-{os.getpid()}"
