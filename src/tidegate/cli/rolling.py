"""A plan that is run where people see it: what sync and delete have in common."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace

from tidegate.cli.screen import Screen
from tidegate.cli.unit_options import TargetOptions
from tidegate.engine.drive import drive
from tidegate.flows.evidence import collect_evidence
from tidegate.flows.sync import Rolling, Target, Venue, make_driver
from tidegate.flows.wiring import Simulation
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.report.rollout.failure import failing_refs
from tidegate.report.rollout.summary import Commands

PASSED, INVALID, FAILED, INTERRUPTED = "passed", 3, 4, 130
PACE = 20.0
"""Seconds of a simulated cluster that pass in one of ours, where somebody is watching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """How a rollout is shown, how long it may take, and how fast simulated time is played."""

    title: str
    json: bool = False
    limit: Ms | None = None
    pace: float | None = None


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


async def show_rollout(
    screen: Screen, place: Venue, plan: Plan, target: Target, rolling: Rolling, watching: Watching
) -> str:
    """Run a plan to its end on a screen; how it ended, in a word."""
    world = place.world
    watched = PACE if screen.is_live and target.simulation is not None else None
    pace = watched if watching.pace is None else watching.pace or None
    driver = make_driver(plan, place, replace(rolling, pace=pace), screen.emit)
    screen.begin(plan, clock=world.now, stop=driver.stop, title=watching.title)
    until = None if watching.limit is None else Ms(world.now() + watching.limit)
    result = await drive(driver, until=until)
    refs = failing_refs(screen.course)
    evidence = await collect_evidence(world, refs, screen.discretion)
    screen.end(evidence, _commands(target))
    return result


def exit_code_of(result: str) -> int:
    return {PASSED: 0, "invalid": INVALID, "stopped": INTERRUPTED}.get(result, FAILED)


def _commands(target: Target) -> Commands:
    """What can be typed next: the same command, and kubectl for the same cluster."""
    chosen = [] if target.context is None else ["--context", target.context]
    file = [] if target.kubeconfig is None else ["--kubeconfig", target.kubeconfig]
    is_real = target.simulation is None
    return Commands(
        again=shlex.join(["tidegate", *sys.argv[1:]]),
        kubectl=shlex.join(["kubectl", *file, *chosen]) if is_real else "",
        resumes=is_real,
    )
