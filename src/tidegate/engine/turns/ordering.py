"""Which step starts when: edges, pauses, retries, and what a failure takes along."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.turns.linking import add, holds, is_on_its_way
from tidegate.engine.turns.rollout import ItemState, StepRun, Turn, UnitRun
from tidegate.engine.turns.waiting import hold_due, keep_slot, leave_slot, may_start
from tidegate.engine.vocabulary import Begun, CheckStep, Expand, Foreseen, Trouble
from tidegate.model.event import FORGIVEN, NOT_NEEDED, StepState, Told
from tidegate.model.ledger import EntryEnd
from tidegate.model.moment import Ms
from tidegate.model.plan import public_digest
from tidegate.model.semantics import ChildGates
from tidegate.model.unit import UnitId

UNTESTED = "was not run: a test before it failed, which is ignored"


def begin(turn: Turn, heard: Begun) -> None:
    rollout, plan = turn.rollout, heard.plan
    rollout.begun = turn.now
    rollout.digest = plan.digest
    runs = add(rollout, plan)
    turn.tell(Told.ROLLOUT_BEGUN, reason=public_digest(plan))
    turn.touched |= rollout.units
    for name, trouble in heard.left_out.items():
        leave_out(turn, rollout.units[name], trouble)
    for name in heard.under_way:
        keep_slot(rollout.units[name])
    release_all(turn, runs, heard.due)


def release(turn: Turn, step: StepRun) -> None:
    """Start a step that no edge holds any more, now or when its pause is over.

    Who depends on a unit looks at it now and then, for the first time when it is brought itself.
    Who waits for units that it has brought looks at them as at its other objects.
    """
    if step.state is not StepState.WAITING:
        return
    if step.unmet:
        _await_brought(turn, step)
        return
    if step.rules.dependency_every or step.rules.look_every:
        _look_now_and_then(turn, step)
    start(turn, step)


def _await_brought(turn: Turn, step: StepRun) -> None:
    """Where a gate counts the units that were brought, they have as long as its objects have.

    A parent that nobody wrote down has no time of its own.
    """
    is_bound = bool(step.rules.deadline and step.unit.unit.id.kind)
    if step.deadline is not None or not step.step.is_joint or not is_bound:
        return
    own = [one for one in step.before if one.unit is step.unit]
    is_gate = step.rules.children is ChildGates.GATES and own
    if is_gate and all(one.state is StepState.PASSED for one in own):
        since = max(one.applied_at for one in own)
        step.deadline = Ms(since + step.rules.deadline)
        turn.ring_at(step.deadline, step)


def outlast(turn: Turn, step: StepRun) -> None:
    """A step waits for units that were brought: for so long, and then its unit has failed."""
    if step.deadline is None:
        return
    if turn.now < step.deadline:
        turn.ring_at(step.deadline, step)
        return
    late = dict.fromkeys(
        one.unit.unit.id for one in step.before if one.state is not StepState.PASSED
    )
    first, *others = late
    more = f" and {len(others)} more" if others else ""
    failed(turn, step, "Deadline", f"`{first}`{more} took too long")


def _look_now_and_then(turn: Turn, step: StepRun) -> None:
    own, others = step.unit.unit, [one for one in step.before if one.unit is not step.unit]
    brought = [one for one in others if one.unit.unit.id == own.parent]
    if any(one.unit.unit.parent == own.id for one in others):
        every = step.rules.look_every if own.id.kind else Ms(0)
        since = (one.applied_at for one in step.before if one.unit is step.unit)
    else:
        every = step.rules.dependency_every if len(others) > len(brought) else Ms(0)
        since = (one.applied_at for one in brought)
    if every:
        begun = max(turn.rollout.begun, *since, Ms(0))
        looks = -(-(turn.now - begun) // every)
        step.not_before = max(step.not_before, Ms(begun + looks * every))


def release_all(turn: Turn, steps: Iterable[StepRun], due: Iterable[UnitId]) -> None:
    """Start steps whose units need not be held, and those of the others when they are."""
    due = tuple(due)
    for name in due:
        unit = turn.rollout.units[name]
        unit.unheld = unit.due = True
    for step in steps:
        release(turn, step)
    hold_due(turn, due)


def start(turn: Turn, step: StepRun) -> None:
    if turn.is_held(step):
        return
    if turn.now < step.not_before:
        turn.ring_at(step.not_before, step)
        return
    if not may_start(turn, step):
        _leave_stuck(turn, step.unit)
        return
    if step.void:
        reason = FORGIVEN if step.step.tests else ""
        turn.enter(step, StepState.PASSED, reason=reason, sentence=UNTESTED if reason else "")
        free(turn, step)
        return
    turn.enter(step, StepState.CHECKING)
    turn.ask(step.unit)
    name, ended = step.step.id, step.unit.failure if step.step.rescues else None
    if step.step.tests:
        ended = EntryEnd(passed=True, hooks=step.unit.hook_runs(turn.now))
    slots = step.unit.slots
    enters = slots is not None and not slots.rests
    turn.order(Expand(name) if step.step.expands else CheckStep(name, ended, enters))


def _leave_stuck(turn: Turn, unit: UnitRun) -> None:
    """Leave out a unit that waits for a slot which a failed one keeps."""
    slots = unit.slots
    if slots is None or unit.admitted or unit.unheld or not slots.is_stuck:
        return
    slots.queue.pop(unit.unit.id, None)
    unit.rescues = []
    failed_ones = ", ".join(f"`{one}`" for one in slots.failed)
    why = f"{failed_ones} failed, and {slots.limit} of `{slots.group}` may be under way"
    for step in unit.steps:
        if step.state is StepState.WAITING:
            turn.enter(step, StepState.SKIPPED, reason="Slots", sentence=why)
            settle_part(turn, step)
            skip_behind(turn, step)


def start_unit(turn: Turn, unit: UnitRun) -> None:
    """Start what only waited for leave."""
    for step in unit.steps:
        if not step.unmet and step.state is StepState.WAITING:
            start(turn, step)


def rest(turn: Turn, unit: UnitRun) -> None:
    """Leave the worker to others until there is something to do, where a unit has one."""
    if unit.slots is not None and unit.slots.rests and unit.admitted:
        for waiting in leave_slot(unit):
            start_unit(turn, waiting)


def foreseen(turn: Turn, heard: Foreseen) -> None:
    """A step that cannot be taken fails before its turn, while the gates before it still wait."""
    step = turn.rollout.steps.get(heard.step)
    if step is None or step.state is not StepState.WAITING or step.step.digest != heard.digest:
        return
    if not step.step.rescues and not step.unit.unit.policy.carries_on:
        failed(turn, step, heard.trouble.reason, heard.trouble.sentence, final=True)


def passed(turn: Turn, step: StepRun) -> None:
    turn.enter(step, StepState.PASSED)
    free(turn, step)


def free(turn: Turn, step: StepRun) -> None:
    """Let go of what waits for a step."""
    settle_part(turn, step)
    for after in (one for one in step.after if one.state is StepState.WAITING):
        if is_on_its_way(step, after):
            continue
        after.unmet -= 1
        if after.unit is step.unit and after.step.spot != step.step.spot:
            after.not_before = max(after.not_before, Ms(step.applied_at + step.rules.pause))
        release(turn, after)
    step.let_go |= step.step.is_joint and step.rules.children is ChildGates.GATES


def failed(turn: Turn, step: StepRun, reason: str, sentence: str, *, final: bool = False) -> None:
    """Try again where that is worth it; else the step has failed, and what lies behind it."""
    retry, unit = step.rules.retry, step.unit
    if unit.stopped:
        return  # what is left of it is given up when nothing of it is under way
    if step.step.tests and unit.unit.policy.forgives_tests:
        _forgive(turn, step, sentence)
        return
    attempt = (unit.attempts if retry.whole else step.attempts) + 1
    final = final or step.step.rescues
    if not step.step.rescues:
        hooks = unit.hook_runs(turn.now, failing=step)
        unit.failure = EntryEnd(passed=False, sentence=sentence, hooks=hooks)
    if not final and attempt <= retry.limit and not turn.is_held(step):
        unit.attempts, step.attempts = attempt, attempt
        _retry(turn, step, retry.pause(attempt), reason, sentence)
        return
    turn.rollout.failed = unit.failed = True
    turn.enter(step, StepState.FAILED, reason=reason, sentence=sentence)
    if unit.remedying:
        _leave_unremedied(turn, step)
        return
    if unit.unit.policy.carries_on:
        free(turn, step)
        return
    settle_part(turn, step)
    skip_behind(turn, step)


def _forgive(turn: Turn, step: StepRun, sentence: str) -> None:
    """A test that fails is told, and counts for nothing; what is left of them is not run."""
    for run in step.items:
        run.state = ItemState.PASSED if run.state is ItemState.PASSED else ItemState.FAILED
    for one in step.unit.steps:
        one.void |= one.step.tests and one.state is StepState.WAITING
    told = f"failed, which is ignored: {sentence}"
    turn.enter(step, StepState.PASSED, reason=FORGIVEN, sentence=told)
    free(turn, step)


def _retry(turn: Turn, step: StepRun, pause: Ms, reason: str, sentence: str) -> None:
    again = Ms(turn.now + pause)
    step.unit.outdated |= step.rules.retry.refreshes
    step.unit.rescued = ()
    turn.tell(Told.RETRY_PLANNED, _speaker(step), reason=reason, sentence=sentence, until=again)
    steps = [step]
    if step.rules.retry.whole:
        steps += [one for one in step.unit.steps if one.state is StepState.PASSED]
    for one in steps:
        for after in one.after if one.state is StepState.PASSED else ():
            if not is_on_its_way(one, after):
                after.unmet += 1  # of another unit, which may not have begun
        reset(one)
    rest(turn, step.unit)
    for one in steps:
        one.not_before = again
        one.unmet = sum(holds(before, one) for before in one.before)
    if step.rules.retry.rescues and step.unit.rescues and _is_remedied(step):
        step.unit.remedying = True
        _begin_rescues(turn, step.unit.rescues)
    for one in steps:
        release(turn, one)


def _is_remedied(failed: StepRun) -> bool:
    """Whether something is done about the failure of a step."""
    return not failed.step.tests or failed.unit.unit.policy.remedies_tests


def _begin_rescues(turn: Turn, waiting: list[StepRun]) -> None:
    """Nothing but the order among them holds the steps that a unit has for its failure."""
    for one in waiting:
        one.unmet -= 1
    for one in list(waiting):
        release(turn, one)


def _remedied(turn: Turn, unit: UnitRun) -> None:
    """What there is for a failure is done: the unit is tried again, and may fail again."""
    if not all(one.state is StepState.PASSED for one in unit.rescues):
        return
    unit.remedying, unit.rescued = False, unit.hook_runs(turn.now, rescues=True)
    for one in unit.rescues:
        reset(one)
    for one in unit.rescues:
        one.unmet = 1 + sum(holds(before, one) for before in one.before)
    start_unit(turn, unit)


def _leave_unremedied(turn: Turn, step: StepRun) -> None:
    """A unit whose failure could not be made good is not tried again."""
    unit = step.unit
    unit.remedying, unit.rescues = False, []
    sentence = f"`{step.step.id}`, which was to make good its failure, failed"
    for one in unit.steps:
        if one.state is StepState.WAITING:
            turn.enter(one, StepState.SKIPPED, reason="Behind", sentence=sentence)
            settle_part(turn, one)
            skip_behind(turn, one)


def _speaker(step: StepRun) -> StepRun:
    """Of a joint nobody hears: the last step of its unit that has objects speaks for it."""
    if not step.step.is_joint:
        return step
    return next((one for one in reversed(step.unit.steps) if not one.step.is_joint), step)


def reset(step: StepRun) -> None:
    """Back to the beginning; what is in the cluster stays there and is found again."""
    if step.is_final:
        step.unit.unfinished += 1
    step.state = StepState.WAITING
    step.batch = 0
    step.trouble = None
    step.deadline = step.look_at = None
    step.looking = False
    step.outstanding = sum(run.asked for run in step.items)
    for run in step.items:
        run.forget()


def skip_behind(turn: Turn, step: StepRun) -> None:
    """What waits for a step that will not pass is left out."""
    sentence = f"`{step.step.id}` comes before it and failed"
    behind = list(reversed(step.after))
    while behind:
        one = behind.pop()
        if one.state is StepState.WAITING:
            turn.enter(one, StepState.SKIPPED, reason="Behind", sentence=sentence)
            settle_part(turn, one)
            behind += reversed(one.after)


def leave_out(turn: Turn, unit: UnitRun, trouble: Trouble) -> None:
    """A unit with a fault is not begun, nor is what waits for it, nor what it has for failures."""
    unit.rescues = []
    unit.failed = turn.rollout.failed = True
    unit.left_for = trouble.sentence
    for step in unit.steps:
        if step.state is not StepState.WAITING:
            continue
        state = StepState.SKIPPED if step.step.rescues else StepState.FAILED
        turn.enter(step, state, reason=trouble.reason, sentence=trouble.sentence)
        skip_behind(turn, step)


def rescue(turn: Turn, step: StepRun) -> None:
    """When a unit is at rest, start what it has for its failure, or leave it out."""
    unit = step.unit
    if unit.remedying and step.step.rescues:
        _remedied(turn, unit)
    if not unit.rescues or step.step.rescues:
        return
    ordinary = [one for one in unit.steps if not one.step.rescues]
    if not all(one.is_final for one in ordinary):
        return
    waiting, unit.rescues = unit.rescues, []
    failed_ones = [one for one in ordinary if one.state is StepState.FAILED]
    failed_too = bool(failed_ones)
    if step.rules.retry.rescues_last and any(map(_is_remedied, failed_ones)):
        _begin_rescues(turn, waiting)
        return
    why = "its last failure is left as it is" if failed_too else "nothing failed"
    for one in waiting:
        if one.state is StepState.WAITING:
            turn.enter(one, StepState.SKIPPED, reason=NOT_NEEDED, sentence=why)
            skip_behind(turn, one)


def settle_part(turn: Turn, step: StepRun) -> None:
    """Tell the step that expanded to this one that it is at rest."""
    rescue(turn, step)
    parent = step.part_of
    if parent is None:
        return
    parent.parts -= 1
    if step.state is not StepState.PASSED:
        parent.broken = step.step.id
    if not parent.parts:
        close_expanded(turn, parent)


def close_expanded(turn: Turn, parent: StepRun) -> None:
    if parent.broken:
        sentence = f"`{parent.broken}`, which it yielded, did not pass"
        failed(turn, parent, "PartFailed", sentence, final=True)
    else:
        passed(turn, parent)
