"""A plan that is run where people see it: what sync and delete have in common."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from tidegate.cli import options
from tidegate.cli.asking import setting_of, target_of
from tidegate.cli.assuming import show_absences
from tidegate.cli.doing import Doing
from tidegate.cli.saying import note
from tidegate.cli.screen import Screen
from tidegate.cli.unit_options import Given
from tidegate.flows.assuming import open_assuming
from tidegate.flows.entering import Found
from tidegate.flows.pointing import Pointed
from tidegate.flows.recording import RecordedAudience, RunBook
from tidegate.flows.rollout import Rolling, roll_out
from tidegate.flows.session import Session, Target
from tidegate.model.event import Result
from tidegate.model.plan import Plan
from tidegate.report.refusals import faults_of_rollout
from tidegate.report.rollout.ending import is_explained, rollout_ending
from tidegate.report.rollout.summary import Commands

PACE = 20.0
"""Seconds of a simulated cluster that pass in one of ours, where somebody is watching."""


@asynccontextmanager
async def on_screen(
    pointed: Pointed, told: Given, doing: Doing, then: str
) -> AsyncIterator[tuple[Screen, Session, Found]]:
    """A screen, the clusters that are chosen, and what is pointed at.

    It is said that they are reached for, and what is done then.
    """
    target = target_of(told)
    async with Screen.on(sys.stdout, os.environ, json=told["output"] == "json") as screen:
        screen.introduce(pointed.what, _commands(target, Result.STOPPED))
        if target.simulation is None:
            names = [one for one in target.contexts.values() if one]
            doing.say(f"connecting to {'context ' + ', '.join(names) if names else 'the cluster'}")
        greenfield = told.get("greenfield", True)
        opened = open_assuming(pointed, target, setting_of(told), greenfield=greenfield)
        async with opened as (session, found, absences):
            if "greenfield" in told:
                doing.clear()
                is_json = told["output"] == "json"
                show_absences(absences, greenfield=greenfield, json=is_json, aside=True)
            title = ", ".join(str(one.entry) for one in found.families)
            screen.introduce(title, _commands(target, Result.STOPPED))
            doing.say(then)
            yield screen, session, found
        screen.refuse_unheard()


async def show_rollout(
    screen: Screen,
    session: Session,
    plan: Plan,
    rolling: Rolling,
    told: Given,
    record: RunBook | None = None,
) -> Result:
    """Run a plan to its end on a screen, and write down what happens if that is wished."""
    target = session.target
    watched = PACE if screen.is_live and target.simulation is not None else None
    pace = watched if told["pace"] is None else told["pace"] or None
    rolling = replace(
        rolling, pace=pace, within=told["timeout"], explains=True, reads_logs=told["logs"]
    )
    audience = screen if record is None else RecordedAudience(screen, record)
    ended = await roll_out(plan, session, rolling, audience)
    screen.end(ended.evidence, _commands(target, ended.result))
    if record is not None and is_explained(screen.course):
        record.add(rollout_ending(screen.course, ended.evidence))
    options.say_findings(faults_of_rollout(screen.course, ended.evidence))
    for line in ended.unreported:
        note(line)
    return ended.result


def _commands(target: Target, result: Result) -> Commands:
    """What can be typed next: the same command, and kubectl for the same cluster.

    What failed without its order may go well with it.
    """
    goes_on = result in {Result.STOPPED, Result.LATE, Result.OVERTAKEN}
    words = [word for word in sys.argv[1:] if goes_on or word != "--ignore-waves"]
    chosen = [] if target.context is None else ["--context", target.context]
    file = [] if target.kubeconfig is None else ["--kubeconfig", target.kubeconfig]
    is_real = target.simulation is None
    return Commands(
        again=shlex.join(["tidegate", *words]),
        kubectl=shlex.join(["kubectl", *file, *chosen]) if is_real else "",
        resumes=is_real,
    )
