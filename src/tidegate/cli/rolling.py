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
from tidegate.engine.drive import drive
from tidegate.flows.evidence import Background, inquire
from tidegate.flows.sync import Rolling, Target, Venue, make_driver, open_target
from tidegate.flows.wiring import Simulation
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.summary import Commands

PASSED, STOPPED, FORBIDDEN = "passed", "stopped", "forbidden"
INVALID, FAILED, SAID_NO, INTERRUPTED = 3, 4, 5, 130
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
        simulation=simulation if told["sandbox"] else None,
        health_rules=told["health_rules"],
    )


@asynccontextmanager
async def reach(target: Target, doing: Doing, then: str) -> AsyncIterator[Venue]:
    """The cluster of a target. It is said that it is reached for, and what is done then."""
    if target.simulation is None:
        name = f"context {target.context}" if target.context else "the cluster"
        doing.say(f"connecting to {name}")
    async with open_target(target) as place:
        doing.say(then)
        yield place


async def show_rollout(
    screen: Screen, place: Venue, plan: Plan, target: Target, rolling: Rolling, watching: Watching
) -> str:
    """Run a plan to its end on a screen; how it ended, in a word."""
    world = place.world
    watched = PACE if screen.is_live and target.simulation is not None else None
    pace = watched if watching.pace is None else watching.pace or None
    driver = make_driver(plan, place, replace(rolling, pace=pace), screen.emit)
    commands = _commands(target, STOPPED)
    screen.begin(plan, clock=world.now, stop=driver.stop, title=watching.title, commands=commands)
    until = None if watching.limit is None else Ms(world.now() + watching.limit)
    result = await drive(driver, until=until)
    background = Background(plan=plan, catalogue=place.known, discretion=screen.discretion)
    screen.end(await inquire(world, screen.course, background), _commands(target, result))
    return FORBIDDEN if _is_forbidden(screen.course) else result


def exit_code_of(result: str) -> int:
    codes = {PASSED: 0, "invalid": INVALID, FORBIDDEN: SAID_NO, STOPPED: INTERRUPTED}
    return codes.get(result, FAILED)


def _is_forbidden(course: Course) -> bool:
    """Whether nothing is wrong but what we may do in the cluster."""
    reasons = {remark.reason for remark in course.refused}
    return course.result == "invalid" and reasons == {"Forbidden"}


def _commands(target: Target, result: str) -> Commands:
    """What can be typed next: the same command, and kubectl for the same cluster.

    What failed without its order may go well with it.
    """
    words = [word for word in sys.argv[1:] if result == STOPPED or word != "--ignore-waves"]
    chosen = [] if target.context is None else ["--context", target.context]
    file = [] if target.kubeconfig is None else ["--kubeconfig", target.kubeconfig]
    is_real = target.simulation is None
    return Commands(
        again=shlex.join(["tidegate", *words]),
        kubectl=shlex.join(["kubectl", *file, *chosen]) if is_real else "",
        resumes=is_real,
    )
