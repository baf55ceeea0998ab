"""What to do next: pure, and incremental.

    state + input + time → commands, events, the next alarm

It changes only its own state. An input touches what it concerns and what that sets free, so that a
rollout costs what its steps and edges cost.
"""

from __future__ import annotations

from tidegate.engine import vocabulary as words
from tidegate.engine.turns.applying import checked, gone, replaced, resume, verified, wrote
from tidegate.engine.turns.ending import allow, collected, finish, journaled, lent, stop
from tidegate.engine.turns.gating import judged, look, looked, probed
from tidegate.engine.turns.graft import expanded, give_way, supersede, taken
from tidegate.engine.turns.ordering import begin, foreseen, outlast, start
from tidegate.engine.turns.rollout import Rollout, StepRun, Turn
from tidegate.model.event import StepState
from tidegate.model.moment import Ms


def decide(rollout: Rollout, heard: words.Input, now: Ms) -> words.Decision:
    turn = Turn(rollout, now)
    if isinstance(heard, words.AboutObjects):
        _hear_of_objects(turn, heard)
    elif isinstance(heard, words.Journaled):
        journaled(turn, heard)
    elif isinstance(heard, words.Foreseen):
        foreseen(turn, heard)
    elif isinstance(heard, words.Collected):
        collected(turn, heard)
    elif isinstance(heard, words.Taken):
        taken(turn, heard)
    elif isinstance(heard, words.Lent):
        lent(turn, heard)
    else:
        _hear_of_order(turn, heard)
    give_way(turn)
    finish(turn)
    return turn.decision()


def _hear_of_objects(turn: Turn, heard: words.AboutObjects) -> None:
    match heard:
        case words.Checked():
            checked(turn, heard)
        case words.Wrote():
            wrote(turn, heard)
        case words.Judged():
            replaced(turn, heard)
            judged(turn, heard)
        case words.Gone():
            gone(turn, heard)
        case words.Looked():
            looked(turn, heard)
        case words.Probed():
            probed(turn, heard)
        case words.Verified():
            verified(turn, heard)


def _hear_of_order(turn: Turn, heard: words.AboutOrder) -> None:
    match heard:
        case words.Begun():
            begin(turn, heard)
        case words.Expanded():
            expanded(turn, heard)
        case words.Superseded():
            supersede(turn, heard)
        case words.Stopped():
            stop(turn, heard)
        case words.Approved() | words.Refreshed():
            allow(turn, heard)
        case words.Rung():
            for name in turn.rollout.rung(turn.now):
                _ring(turn, turn.rollout.steps.get(name))


def _ring(turn: Turn, step: StepRun | None) -> None:
    """An alarm of a step: its pause is over, or its gate wants a look."""
    if step is None:
        return
    if step.state is StepState.WAITING:
        (outlast if step.unmet else start)(turn, step)
    elif step.state is StepState.APPLYING:
        resume(turn, step)
    elif step.state is StepState.GATING and not step.step.expands:
        look(turn, step)
