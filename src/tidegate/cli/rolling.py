"""A plan that is run where people see it: what sync and delete have in common."""

from __future__ import annotations

import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tidegate.cli import options
from tidegate.cli.doing import SILENT, Doing
from tidegate.cli.screen import Screen
from tidegate.cli.unit_options import TargetOptions, WatchingOptions
from tidegate.flows.rendering import Setting
from tidegate.flows.rollout import Rolling, roll_out
from tidegate.flows.session import Session, Target, open_session
from tidegate.flows.wiring import Simulation
from tidegate.model.event import Result
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.report.rollout.summary import Commands

PACE = 20.0
"""Seconds of a simulated cluster that pass in one of ours, where somebody is watching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """How a rollout is shown, how long it may take, and how fast simulated time is played.

    `doing`: what is said until there is something to show.
    """

    title: str
    doing: Doing = SILENT
    json: bool = False
    limit: Ms | None = None
    pace: float | None = None


def watching_of(title: str, doing: Doing, told: WatchingOptions) -> Watching:
    """How the user wants to see it."""
    return Watching(
        title=title,
        doing=doing,
        limit=options.limit(told["timeout"], "--timeout"),
        pace=told["pace"],
        json=told["output"] == "json",
    )


def target_of(told: TargetOptions) -> Target:
    """The cluster that is chosen."""
    simulation = Simulation(
        scenario=told["scenario"],
        profile=told["profile"],
        operators=told["operators"],
        seed=told["seed"],
    )
    return Target(
        kubeconfig=told["kubeconfig"],
        context=told["context"],
        clusters=told["clusters"],
        simulation=simulation if told["sandbox"] else None,
        health_rules=told["health_rules"],
    )


@asynccontextmanager
async def reach(
    target: Target, setting: Setting, doing: Doing, then: str
) -> AsyncIterator[Session]:
    """The clusters of a target. It is said that they are reached for, and what is done then."""
    if target.simulation is None:
        names = [one for one in target.contexts.values() if one]
        doing.say(f"connecting to {'context ' + ', '.join(names) if names else 'the cluster'}")
    async with open_session(target, setting) as session:
        doing.say(then)
        yield session


async def show_rollout(
    screen: Screen, session: Session, plan: Plan, rolling: Rolling, watching: Watching
) -> Result:
    """Run a plan to its end on a screen."""
    target = session.target
    watched = PACE if screen.is_live and target.simulation is not None else None
    pace = watched if watching.pace is None else watching.pace or None
    screen.introduce(watching.title, _commands(target, Result.STOPPED))
    rolling = replace(rolling, pace=pace, within=watching.limit)
    ended = await roll_out(plan, session, rolling, screen)
    screen.end(ended.evidence, _commands(target, ended.result))
    return ended.result


def _commands(target: Target, result: Result) -> Commands:
    """What can be typed next: the same command, and kubectl for the same cluster.

    What failed without its order may go well with it.
    """
    words = [word for word in sys.argv[1:] if result is Result.STOPPED or word != "--ignore-waves"]
    chosen = [] if target.context is None else ["--context", target.context]
    file = [] if target.kubeconfig is None else ["--kubeconfig", target.kubeconfig]
    is_real = target.simulation is None
    return Commands(
        again=shlex.join(["tidegate", *words]),
        kubectl=shlex.join(["kubectl", *file, *chosen]) if is_real else "",
        resumes=is_real,
    )
