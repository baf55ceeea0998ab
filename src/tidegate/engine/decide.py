"""What to do next: pure, and incremental.

    state + input + time → commands, events, the next alarm

It changes only its own state. An input touches what it concerns and what that sets free, so that a
rollout costs what its steps and edges cost.
"""

from __future__ import annotations

from tidegate.engine.turns.applying import checked, gone, replaced, resume, verified, wrote
from tidegate.engine.turns.ending import approve, collected, finish, journaled, lent, stop
from tidegate.engine.turns.gating import judged, look, looked, probed
from tidegate.engine.turns.graft import expanded, give_way, supersede, taken
from tidegate.engine.turns.ordering import begin, foreseen, start
from tidegate.engine.turns.rollout import Rollout, StepRun, Turn
from tidegate.engine.vocabulary import (
    Approved,
    Begun,
    Checked,
    Collected,
    Decision,
    Expanded,
    Foreseen,
    Gone,
    Input,
    Journaled,
    Judged,
    Lent,
    Looked,
    Probed,
    Rung,
    Stopped,
    Superseded,
    Taken,
    Verified,
    Wrote,
)
from tidegate.model.event import StepState
from tidegate.model.moment import Ms

ABOUT_OBJECTS = Checked | Wrote | Judged | Gone | Looked | Probed | Verified


def decide(rollout: Rollout, heard: Input, now: Ms) -> Decision:
    turn = Turn(rollout, now)
    if isinstance(heard, ABOUT_OBJECTS):
        _hear_of_objects(turn, heard)
    elif isinstance(heard, Journaled):
        journaled(turn, heard)
    elif isinstance(heard, Foreseen):
        foreseen(turn, heard)
    elif isinstance(heard, Collected):
        collected(turn, heard)
    elif isinstance(heard, Taken):
        taken(turn, heard)
    elif isinstance(heard, Lent):
        lent(turn, heard)
    else:
        _hear_of_order(turn, heard)
    give_way(turn)
    finish(turn)
    return turn.decision()


def _hear_of_objects(
    turn: Turn, heard: Checked | Wrote | Judged | Gone | Looked | Probed | Verified
) -> None:
    match heard:
        case Checked():
            checked(turn, heard)
        case Wrote():
            wrote(turn, heard)
        case Judged():
            replaced(turn, heard)
            judged(turn, heard)
        case Gone():
            gone(turn, heard)
        case Looked():
            looked(turn, heard)
        case Probed():
            probed(turn, heard)
        case Verified():
            verified(turn, heard)


def _hear_of_order(
    turn: Turn, heard: Begun | Expanded | Superseded | Stopped | Approved | Rung
) -> None:
    match heard:
        case Begun():
            begin(turn, heard)
        case Expanded():
            expanded(turn, heard)
        case Superseded():
            supersede(turn, heard)
        case Stopped():
            stop(turn, heard)
        case Approved():
            approve(turn, heard)
        case Rung():
            for name in turn.rollout.rung(turn.now):
                _ring(turn, turn.rollout.steps.get(name))


def _ring(turn: Turn, step: StepRun | None) -> None:
    """An alarm of a step: its pause is over, or its gate wants a look."""
    if step is None:
        return
    if step.state is StepState.WAITING and not step.unmet:
        start(turn, step)
    elif step.state is StepState.APPLYING:
        resume(turn, step)
    elif step.state is StepState.GATING and not step.step.expands:
        look(turn, step)
