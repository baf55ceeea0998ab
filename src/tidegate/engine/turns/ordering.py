"""Which step starts when: edges, pauses, retries, and what a failure takes along."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.turns.rollout import ItemRun, Rollout, StepRun, Turn
from tidegate.engine.vocabulary import Check, Collect, Collected, Expand, Foreseen, Spot
from tidegate.model.event import StepState, Told
from tidegate.model.moment import Ms
from tidegate.model.plan import Edge, Plan, Step


def begin(turn: Turn, plan: Plan) -> None:
    rollout = turn.rollout
    rollout.begun = turn.now
    rollout.digest = plan.digest
    runs = add(rollout, plan.steps, plan.edges)
    turn.tell(Told.ROLLOUT_BEGUN, reason=plan.digest)
    for run in runs:
        release(turn, run)


def add(rollout: Rollout, steps: Iterable[Step], edges: Iterable[Edge]) -> list[StepRun]:
    """Take steps and edges into the rollout; ends of edges must be known by then."""
    runs = [StepRun(step) for step in steps]
    for run in runs:
        rollout.steps[run.step.id] = run
        rollout.unfinished += 1
        for item in (item for batch in run.step.batches for item in batch):
            spot = Spot(run.step.cluster, item.ref)
            run.items.append(ItemRun(item, spot, run))
            rollout.hooked = rollout.hooked or item.hook is not None
            rollout.items.setdefault(spot, []).append(run.items[-1])
        if run.step.rescues:
            run.unmet += 1
            rollout.rescues.setdefault(run.step.unit, []).append(run)
    for edge in edges:
        link(rollout.steps[edge.before], rollout.steps[edge.after])
    return runs


def link(before: StepRun, after: StepRun) -> None:
    before.after.append(after)
    after.before.append(before)
    after.unmet += before.state is not StepState.PASSED


def _is_held_by(rollout: Rollout, before: StepRun) -> bool:
    """Whether what comes before holds what comes after; a failure may not, by the policy."""
    through = before.state is StepState.FAILED and rollout.carries_on
    return before.state is not StepState.PASSED and not through


def release(turn: Turn, step: StepRun) -> None:
    """Start a step that no edge holds any more, now or when its pause is over."""
    if step.unmet or step.state is not StepState.WAITING:
        return
    every = turn.rollout.semantics.dependency_every
    if every and any(before.step.unit != step.step.unit for before in step.before):
        elapsed = turn.now - turn.rollout.begun
        step.not_before = max(
            step.not_before, Ms(turn.rollout.begun + -(-elapsed // every) * every)
        )
    start(turn, step)


def start(turn: Turn, step: StepRun) -> None:
    if turn.rollout.held:
        return
    if turn.now < step.not_before:
        turn.ring_at(step.not_before, step)
        return
    turn.enter(step, StepState.CHECKING)
    turn.rollout.busy += 1
    name = step.step.id
    turn.order(Expand(name) if step.step.expands else Check(name))


def foreseen(turn: Turn, heard: Foreseen) -> None:
    """A step that cannot be taken fails before its turn, while the gates before it still wait."""
    step = turn.rollout.steps.get(heard.step)
    if step is None or step.state is not StepState.WAITING or step.step.digest != heard.digest:
        return
    if not step.step.rescues and not turn.rollout.carries_on:
        failed(turn, step, heard.trouble.reason, heard.trouble.sentence, final=True)


def passed(turn: Turn, step: StepRun) -> None:
    turn.enter(step, StepState.PASSED)
    free(turn, step)


def free(turn: Turn, step: StepRun) -> None:
    """Let go of what waits for a step."""
    settle_part(turn, step)
    pause = turn.rollout.semantics.pause
    for after in step.after:
        after.unmet -= 1
        if after.step.unit == step.step.unit:
            after.not_before = max(after.not_before, Ms(step.applied_at + pause))
        release(turn, after)


def failed(turn: Turn, step: StepRun, reason: str, sentence: str, *, final: bool = False) -> None:
    """Try again where that is worth it; else the step has failed, and what lies behind it."""
    rollout = turn.rollout
    retry = rollout.semantics.retry
    key = step.step.unit if retry.whole else step.step.id
    attempt = rollout.attempts.get(key, 0) + 1
    if not final and attempt <= retry.limit and not rollout.held:
        rollout.attempts[key] = attempt
        _retry(turn, step, retry.pause(attempt), reason, sentence)
        return
    rollout.failed = True
    turn.enter(step, StepState.FAILED, reason=reason, sentence=sentence)
    if rollout.carries_on:
        free(turn, step)
        return
    settle_part(turn, step)
    _skip_behind(turn, step)


def _retry(turn: Turn, step: StepRun, pause: Ms, reason: str, sentence: str) -> None:
    again = Ms(turn.now + pause)
    turn.tell(Told.RETRY_PLANNED, step, reason=reason, sentence=sentence, until=again)
    steps = [step]
    if turn.rollout.semantics.retry.whole:
        unit = step.step.unit
        done = (one for one in turn.rollout.steps.values() if one.state is StepState.PASSED)
        steps += [one for one in done if one.step.unit == unit]
    for one in steps:
        reset(turn.rollout, one)
    for one in steps:
        one.not_before = again
        one.unmet = sum(_is_held_by(turn.rollout, before) for before in one.before)
    for one in steps:
        release(turn, one)


def reset(rollout: Rollout, step: StepRun) -> None:
    """Back to the beginning; what is in the cluster stays there and is found again."""
    if step.is_final:
        rollout.unfinished += 1
    step.state = StepState.WAITING
    step.batch = 0
    step.trouble = None
    step.deadline = step.look_at = None
    step.looking = False
    step.outstanding = sum(run.asked for run in step.items)
    for run in step.items:
        run.forget()


def _skip_behind(turn: Turn, step: StepRun) -> None:
    sentence = f"`{step.step.id}` comes before it and failed"
    behind = list(reversed(step.after))
    while behind:
        one = behind.pop()
        if one.state is StepState.WAITING:
            turn.enter(one, StepState.SKIPPED, reason="Behind", sentence=sentence)
            settle_part(turn, one)
            behind += reversed(one.after)


def rescue(turn: Turn, step: StepRun) -> None:
    """When a unit is at rest, start what it has for its failure, or leave it out."""
    unit = step.step.unit
    waiting = turn.rollout.rescues.get(unit)
    if not waiting or step.step.rescues:
        return
    mine = [one for one in turn.rollout.steps.values() if one.step.unit == unit]
    ordinary = [one for one in mine if not one.step.rescues]
    if not all(one.is_final for one in ordinary):
        return
    del turn.rollout.rescues[unit]
    failed_too = any(one.state is StepState.FAILED for one in ordinary)
    for one in waiting:
        if failed_too:
            one.unmet -= 1
            release(turn, one)
        else:
            turn.enter(one, StepState.SKIPPED, reason="NotNeeded", sentence="nothing failed")


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


def _collect(rollout: Rollout) -> Collect:
    units = dict.fromkeys(step.step.unit for step in rollout.steps.values())
    bad = {step.step.unit for step in rollout.steps.values() if step.state is StepState.FAILED}
    passed_units = tuple(unit for unit in units if unit not in bad)
    return Collect(passed_units, tuple(unit for unit in units if unit in bad))


def collected(turn: Turn, heard: Collected) -> None:
    turn.rollout.busy -= 1
    for spot in heard.deleted:
        turn.tell(Told.HOOK_DELETED, ref=spot.ref)


def journaled(turn: Turn) -> None:
    turn.rollout.busy -= 1


def stop(turn: Turn, reason: str) -> None:
    turn.rollout.stopped = reason


def finish(turn: Turn) -> None:
    """End a rollout that is at rest: nothing is left to do, or nothing more is to be done."""
    rollout = turn.rollout
    if rollout.ended or (rollout.yields and not rollout.stopped):
        return
    if not rollout.unfinished and rollout.hooked and not rollout.busy:
        rollout.hooked = False
        rollout.busy += 1
        turn.order(_collect(rollout))
    elif not rollout.unfinished and not rollout.busy:
        rollout.ended = True
        turn.tell(Told.ROLLOUT_ENDED, reason="failed" if rollout.failed else "passed")
    elif rollout.stopped and not rollout.busy:
        rollout.ended = True
        turn.tell(Told.ROLLOUT_ENDED, reason="stopped", sentence=rollout.stopped)
