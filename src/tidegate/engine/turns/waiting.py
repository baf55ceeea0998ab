"""What holds a step that no edge holds: its barrier, who has its unit, the slots of its group."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.turns.rollout import StepRun, Turn, UnitRun
from tidegate.engine.vocabulary import AwaitApproval, Refresh, Take
from tidegate.model.event import StepState, Told
from tidegate.model.moment import Ms
from tidegate.model.sync_window import find_hold
from tidegate.model.unit import UnitId


def may_start(turn: Turn, step: StepRun) -> bool:
    if step.unit.remedying and not step.step.rescues:
        return False
    free = _is_let_through(turn, step) and _is_in_time(turn, step) and _is_fresh(turn, step)
    return free and _is_ours(turn, step) and _is_admitted(turn, step)


def hold_due(turn: Turn, due: Iterable[UnitId]) -> None:
    """Have units held of which no step could begin yet, too: who comes later asks us for them."""
    for unit in (turn.rollout.units[name] for name in due):
        if unit.unheld and not unit.wanted:
            turn.order(Take(unit.unit.id, wanted=False, anew=unit.is_new))


def _is_ours(turn: Turn, step: StepRun) -> bool:
    """Whether the unit is held; if not, it is asked for."""
    unit = step.unit
    if unit.unheld and not unit.wanted:
        unit.wanted = True
        turn.order(Take(unit.unit.id, wanted=True, anew=unit.is_new))
    return not unit.unheld


def _is_let_through(turn: Turn, step: StepRun) -> bool:
    barrier = step.step.barrier
    if barrier is None or step.approved:
        return True
    if turn.now >= barrier.until if barrier.until else step.unit.approved:
        return True
    if barrier.until:
        turn.ring_at(barrier.until, step)
    else:
        _await_approval(turn, step.unit)
    _tell(turn, step, barrier.reason, barrier.sentence, barrier.until)
    return False


def _is_in_time(turn: Turn, step: StepRun) -> bool:
    """Whether the windows of the unit let it begin, or go on, with what there is to do in it."""
    unit, policy = step.unit, step.unit.unit.policy
    if not policy.windows or not unit.due or step.approved:
        return True
    hold = find_hold(policy.windows, turn.now, asked=policy.asked, began=unit.began)
    if hold is None:
        unit.began = turn.now if unit.began is None else unit.began
        return True
    if hold.until:
        turn.ring_at(hold.until, step)
    _tell(turn, _shown(step), "Window", f"the {hold.window.title} holds it", hold.until)
    return False


def _is_fresh(turn: Turn, step: StepRun) -> bool:
    """Whether nobody has to look what the source of the unit has by now."""
    unit, policy = step.unit, step.unit.unit.policy
    if step.step.rescues or (policy.asks_first and step.waits_only):
        return True
    if unit.outdated and not unit.asked:
        unit.asked = True
        turn.order(Refresh(unit.unit.id, unit.failure, unit.rescued))
    return not unit.outdated


def _shown(step: StepRun) -> StepRun:
    """The step that is told of: of a joint nobody hears, so the next of its unit speaks for it."""
    if not step.step.is_joint:
        return step
    waiting = (one for one in step.unit.steps if one.state is StepState.WAITING)
    return next((one for one in waiting if not one.step.is_joint), step)


def _is_admitted(turn: Turn, step: StepRun) -> bool:
    """Whether the unit is under way, or may be from now on; with nothing to do nobody is asked."""
    unit, slots = step.unit, step.unit.slots
    if slots is None or unit.admitted or not (slots.limit or unit.due):
        return True
    if unit.approved or slots.under_way < slots.limit:
        unit.admitted = True
        slots.under_way += 1
        slots.queue.pop(unit.unit.id, None)
        return True
    slots.queue[unit.unit.id] = unit
    if slots.is_stuck:
        return False
    if slots.limit:
        sentence = f"{slots.under_way} of {slots.limit} units of `{slots.group}` are under way"
        _tell(turn, step, "Slots", sentence)
    else:
        _await_approval(turn, unit)
        _tell(turn, step, "Approval", f"`{slots.group}` goes on when somebody approves")
    return False


def _await_approval(turn: Turn, unit: UnitRun) -> None:
    """Listen once for each unit."""
    if not unit.awaits_approval:
        unit.awaits_approval = True
        turn.order(AwaitApproval(unit.unit.id))


def keep_slot(unit: UnitRun) -> None:
    """A unit was under way before: it is counted, though there be too many.

    One that waits for another of its group is not: that one may need the slot to pass.
    """
    if unit.slots is not None and not unit.admitted and not _awaits_its_group(unit):
        unit.admitted = True
        unit.slots.under_way += 1


def _awaits_its_group(unit: UnitRun) -> bool:
    """Whether a step of it waits, by however many others, for one of another unit of its group."""
    known, ahead = set(unit.steps), list(unit.steps)
    while ahead:
        waits = (one for one in ahead.pop().before if one.state is not StepState.PASSED)
        fresh = {one for one in waits if one not in known}
        if any(one.unit is not unit and one.unit.slots is unit.slots for one in fresh):
            return True
        known |= fresh
        ahead += fresh
    return False


def leave_slot(unit: UnitRun) -> list[UnitRun]:
    """A unit is at rest: those that waited for its slot, the first first.

    One that failed keeps it, unless it is a worker's. If all are kept so, whoever waits must hear
    of that.
    """
    slots = unit.slots
    if slots is None:
        return []
    slots.queue.pop(unit.unit.id, None)
    if unit.admitted:
        unit.admitted = False
        if unit.failed and not unit.unit.policy.carries_on and not slots.rests:
            slots.failed.append(unit.unit.id)
        else:
            slots.under_way -= 1
    if slots.is_stuck:
        return list(slots.queue.values())
    free = max(0, slots.limit - slots.under_way)
    return list(slots.queue.values())[:free]


def _tell(turn: Turn, step: StepRun, reason: str, sentence: str, until: Ms = Ms(0)) -> None:
    """Say once for each reason why a step does not start."""
    if step.held_for != sentence:
        step.held_for = sentence
        turn.tell(Told.STEP_WAITING, step, reason=reason, sentence=sentence, until=until)
