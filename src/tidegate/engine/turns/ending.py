"""How units end, one by one, and with the last of them the rollout."""

from __future__ import annotations

from tidegate.engine.turns.ordering import leave_out, rest, settle_part, skip_behind, start_unit
from tidegate.engine.turns.rollout import StepRun, Turn, UnitRun
from tidegate.engine.turns.waiting import leave_slot
from tidegate.engine.vocabulary import (
    Approved,
    Collect,
    Collected,
    Journaled,
    Lent,
    LetGo,
    Refresh,
    Refreshed,
    Stopped,
)
from tidegate.model.event import StepState, Told
from tidegate.model.ledger import HookRun

BEGUN = frozenset({StepState.CHECKING, StepState.APPLYING, StepState.GATING})


def stop(turn: Turn, heard: Stopped) -> None:
    """Begin nothing more: of one unit, or of all."""
    if heard.unit is None:
        turn.rollout.stopped = heard.reason
        return
    unit = turn.rollout.units.get(heard.unit)
    if unit is not None and not unit.ended and not unit.stopped:
        unit.stopped = heard.reason
        turn.touched[heard.unit] = unit


def allow(turn: Turn, heard: Approved | Refreshed) -> None:
    """Nobody holds a step or a unit any longer."""
    if isinstance(heard, Approved):
        _approve(turn, heard)
        return
    unit = turn.rollout.units.get(heard.unit)
    turn.rollout.looking = False
    if unit is None:
        return
    unit.outdated = unit.asked = False
    if heard.trouble is not None:
        turn.touched[heard.unit] = unit
        leave_out(turn, unit, heard.trouble)
    start_unit(turn, unit)


def _approve(turn: Turn, heard: Approved) -> None:
    """Somebody lets a step through its barrier, or a unit begin."""
    step = turn.rollout.steps.get(heard.step)
    if step is not None:
        step.approved = True
    unit = turn.rollout.units.get(heard.unit) if heard.unit else step.unit if step else None
    if unit is not None:
        unit.approved = unit.approved or heard.unit is not None
        start_unit(turn, unit)


def lent(turn: Turn, heard: Lent) -> None:
    """Let go of a unit in which nothing is at work; its next step asks for it again."""
    unit = turn.rollout.units.get(heard.unit)
    if unit is None or unit.ended or unit.unheld or unit.busy:
        return
    if not any(step.is_at_work for step in unit.steps):
        unit.unheld = True
        turn.order(LetGo(heard.unit))


def collected(turn: Turn, heard: Collected) -> None:
    unit = turn.rollout.units[heard.unit]
    turn.answered(unit)
    for spot in heard.deleted:
        turn.tell_of_unit(Told.HOOK_DELETED, unit, ref=spot.ref, reason="")


def journaled(turn: Turn, heard: Journaled) -> None:
    turn.answered(turn.rollout.steps[heard.step].unit)


def finish(turn: Turn) -> None:
    """End what is at rest: nothing is left to do, or nothing more is to be done."""
    rollout = turn.rollout
    if rollout.ended or (rollout.yields and not rollout.stopped):
        return
    while turn.touched and not rollout.stopped:
        touched, turn.touched = turn.touched, {}
        for unit in touched.values():
            _finish_unit(turn, unit)
    if rollout.busy or (rollout.running and not rollout.stopped) or _looks_once_more(turn):
        return
    rollout.ended = True
    why = rollout.stopped if rollout.running else rollout.gave_up
    result = "failed" if rollout.failed and not rollout.running else "stopped" if why else "passed"
    turn.tell(Told.ROLLOUT_ENDED, reason=result, sentence=why if result == "stopped" else "")


def _looks_once_more(turn: Turn) -> bool:
    """Whether somebody looks for the last time if a unit that asks late brings more by now."""
    rollout = turn.rollout
    if rollout.stopped or rollout.failed or rollout.gave_up:
        return False
    if rollout.late is not None:
        turn.order(Refresh(rollout.late, last=True))
        rollout.late, rollout.looking = None, True
    return rollout.looking


def _finish_unit(turn: Turn, unit: UnitRun) -> None:
    if unit.ended or unit.busy:
        return
    if unit.stopped:
        _give_up(turn, unit)
    elif unit.unheld and unit.is_new:
        return  # there may be something to forget, though nothing is to be done
    if unit.unfinished:
        if not any(step.state in BEGUN or _gates_others(step) for step in unit.steps):
            rest(turn, unit)
        return
    if unit.hooked and not unit.stopped:
        unit.hooked = False
        turn.ask(unit)
        turn.order(Collect(unit.unit.id, failed=unit.failed, runs=_runs(turn, unit)))
        return
    unit.ended = True
    turn.rollout.running -= 1
    why = unit.stopped or unit.left_for
    turn.tell_of_unit(Told.UNIT_ENDED, unit, reason=_result(unit), sentence=why)
    for waiting in leave_slot(unit):
        start_unit(turn, waiting)


def _runs(turn: Turn, unit: UnitRun) -> tuple[HookRun, ...] | None:
    """How each hook ended, where Helm's policies go by that."""
    if unit.unit.policy.release is None:
        return None
    return (*unit.hook_runs(turn.now), *unit.hook_runs(turn.now, rescues=True))


def _gates_others(step: StepRun) -> bool:
    """Whether a step has a worker wait for units that were brought."""
    return step.state is StepState.WAITING and step.deadline is not None


def _give_up(turn: Turn, unit: UnitRun) -> None:
    """Nothing of a stopped unit is under way: leave the rest of it, and what waits for it."""
    turn.rollout.gave_up, unit.rescues = unit.stopped, []
    for step in unit.steps:
        if step.is_final:
            continue
        state = StepState.SUPERSEDED if step.state in BEGUN else StepState.SKIPPED
        turn.enter(step, state, reason="Stopped", sentence=unit.stopped)
        settle_part(turn, step)
        skip_behind(turn, step)


def _result(unit: UnitRun) -> str:
    if unit.stopped:
        return "stopped"
    if unit.failed:
        return "failed"
    skipped = any(one.state is StepState.SKIPPED for one in unit.steps if not one.step.rescues)
    return "skipped" if skipped else "passed"
