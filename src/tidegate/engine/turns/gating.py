"""Gates: each object of a step is weighed when something is heard of it, or when it is time."""

from __future__ import annotations

from tidegate.engine import vocabulary as words
from tidegate.engine.fences import Doubt, is_foreign, is_older
from tidegate.engine.turns.gates import Weighed, Weight, weigh
from tidegate.engine.turns.ordering import failed, passed
from tidegate.engine.turns.rollout import ItemRun, ItemState, StepRun, Turn
from tidegate.model.change import Fate
from tidegate.model.event import StepState, Told
from tidegate.model.moment import Ms
from tidegate.model.plan import Deed

FIRST_PROBE = Ms(50)
SLOWEST_PROBE = Ms(2_000)


def open_gate(turn: Turn, step: StepRun) -> None:
    """All is written: begin to wait for it, where the rules ask for that."""
    rules = step.rules
    step.applied_at = step.active_at = turn.now
    step.open = sum(run.state is ItemState.GATING for run in step.items)
    turn.enter(step, StepState.GATING)
    _leave_out(turn, step)
    if not step.open:
        _close(turn, step)
        return
    set_deadline(turn, step)
    own = (one.step for one in step.after if one.unit is step.unit)
    if any(after.spot != step.step.spot for after in own):
        step.look_at = Ms(turn.now + rules.pause)
    look(turn, step)


def _leave_out(turn: Turn, step: StepRun) -> None:
    """Wait for no object that holds nobody up: by its policy, or behind it comes nothing."""
    hooks_only = not step.rules.gates_last and step.step.last
    for run in step.items:
        counts = run.item.hook is not None if hooks_only else run.item.gates
        if run.state is ItemState.GATING and not counts:
            if run.item.deed is Deed.DELETE:
                turn.tell_deed(Told.OBJECT_PRUNED, run, Fate.PRUNE)
            run.state = ItemState.PASSED
            step.open -= 1


def set_deadline(turn: Turn, step: StepRun) -> None:
    """How long a step may take: never less than its objects ask for themselves."""
    ground = step.rules.ground_deadline if step.step.ground else Ms(0)
    least = ground or _own_limit(step) or step.rules.deadline
    if least:
        budgets = () if step.rules.exact else (run.item.budget for run in step.items)
        longest = max(budgets, default=least)
        step.deadline = Ms(turn.now + max(least, longest))
        turn.ring_at(step.deadline, step)


def _own_limit(step: StepRun) -> Ms:
    """What is done about a failure, and tests, may have a time of their own."""
    policy = step.unit.unit.policy
    if step.step.rescues:
        return policy.remedy_timeout
    return policy.test_timeout if step.step.tests else Ms(0)


def _every(step: StepRun) -> Ms:
    """How often a gate is looked at; 0 is whenever something is heard."""
    ground = step.rules.ground_every if step.step.ground else Ms(0)
    return ground or step.rules.look_every


def judged(turn: Turn, heard: words.Judged) -> None:
    for run in turn.rollout.items.get(heard.spot, ()):
        known = run.judged
        if known and known.uid == heard.uid and is_older(heard.version, known.version):
            continue
        run.judged = heard
        step = run.step
        if step.state is not StepState.GATING:
            continue
        if run.state is ItemState.PASSED and run.item.gates:
            _is_verifying(turn, run)
        if run.state is not ItemState.GATING:
            continue
        step.active_at = turn.now
        rules = step.rules
        if _every(step) or step.look_at is not None:
            continue
        if rules.look_after:
            step.look_at = Ms(turn.now + rules.look_after)
            turn.ring_at(step.look_at, step)
        else:
            _look_at(turn, run)


def probed(turn: Turn, heard: words.Probed) -> None:
    for run in turn.rollout.items.get(heard.spot, ()):
        if not run.probing or run.step.step.id != heard.step:
            continue
        run.probing = False
        run.probed = heard.trouble is None
        if run.state is not ItemState.GATING or run.step.state is not StepState.GATING:
            continue
        if heard.trouble is None:
            _look_at(turn, run)
            continue
        tell_wait(turn, run, heard.trouble.reason, heard.trouble.sentence)
        run.probes += 1
        pause = min(SLOWEST_PROBE, FIRST_PROBE << min(run.probes, 10))
        turn.ring_at(Ms(turn.now + pause), run.step)
    if heard.trouble is None:
        turn.order(words.Foresee(heard.spot))


def looked(turn: Turn, heard: words.Looked) -> None:
    step = turn.rollout.steps.get(heard.step)
    if step is None or not step.looking:
        return
    step.looking, step.looked = False, True
    if step.state is StepState.GATING:
        step.look_at = None  # it was asked for out of turn
        look(turn, step)
    step.looked = False


def _is_sure(turn: Turn, step: StepRun) -> bool:
    """Time alone fails nothing: a connection may have been lost, and with it the good news."""
    if not step.looked and not step.looking:
        step.looking = True
        held = (run for run in step.items if run.state is ItemState.GATING)
        objects = ((run.spot, run.written.uid if run.written else "") for run in held)
        turn.order(words.LookAgain(step.step.id, tuple(objects)))
    return step.looked


def look(turn: Turn, step: StepRun) -> None:
    """Weigh every object that still holds a gate."""
    every = _every(step)
    if step.look_at is not None and turn.now < step.look_at:
        turn.ring_at(step.look_at, step)
        return
    step.look_at = None
    for run in step.items:
        if run.state is ItemState.GATING:
            _look_at(turn, run)
        if step.state is not StepState.GATING:
            return
    if not step.open:
        _close(turn, step)
        return
    if not _is_overdue(turn, step) and every:
        step.look_at = Ms(turn.now + every)
        turn.ring_at(step.look_at, step)


def _look_at(turn: Turn, run: ItemRun) -> None:
    if run.item.deed is Deed.DELETE:
        tell_wait(turn, run, "Deleting", "it is being deleted")
    elif not _is_verifying(turn, run):
        _act_on(turn, run, weigh(run, turn.now))


def _act_on(turn: Turn, run: ItemRun, weighed: Weighed) -> None:
    match weighed.weight:
        case Weight.OPENS:
            if run.judged is not None and run.judged.verdict.final:
                run.finished = run.judged.uid
            _tell_ready(turn, run)
            _tell_unproven(turn, run, weighed.doubt)
            settle(turn, run, ItemState.PASSED)
        case Weight.WAITS:
            tell_wait(turn, run, weighed.reason, weighed.sentence)
            if weighed.until is not None:
                turn.ring_at(weighed.until, run.step)
        case Weight.PROBES:
            if not run.probing:
                run.probing = True
                turn.order(words.Probe(run.step.step.id, run.spot))
        case Weight.FAILS:
            _object_fails(turn, run, weighed)


def _is_verifying(turn: Turn, run: ItemRun) -> bool:
    """A verdict counts only while the object holds what we wrote: where it may not, ask first."""
    written, judged = run.written, run.judged
    if not run.step.rules.fenced or written is None or judged is None:
        return False
    if not is_foreign(written, judged, run.verified):
        return False
    turn.order(words.Verify(run.step.step.id, run.spot))
    return True


def _tell_ready(turn: Turn, run: ItemRun) -> None:
    """Take back what was told of a wait."""
    if run.waits:
        turn.tell(Told.OBJECT_READY, run.step, ref=run.item.ref)
        run.waits = ""


def _tell_unproven(turn: Turn, run: ItemRun, lapsed: Doubt | None) -> None:
    if lapsed is not None:
        told, ref = Told.GATE_UNPROVEN, run.item.ref
        turn.tell(told, run.step, ref=ref, reason=lapsed.reason, sentence=lapsed.sentence)


def _object_fails(turn: Turn, run: ItemRun, weighed: Weighed) -> None:
    step = run.step
    if weighed.by_time and not _is_sure(turn, step):
        return
    if step.trouble is None or weighed.final:
        step.trouble = words.Trouble(weighed.reason, _told_failure(run, weighed), weighed.final)
    if step.rules.patient:
        settle(turn, run, ItemState.FAILED)
    else:
        _close(turn, step)


def _told_failure(run: ItemRun, weighed: Weighed) -> str:
    return f"{run.item.ref}: {weighed.sentence or weighed.reason}"


def settle(turn: Turn, run: ItemRun, state: ItemState) -> None:
    """An object no longer holds the gate of its step."""
    run.state = state
    run.step.open -= 1
    if run.item.hook is not None:
        turn.tell(Told.HOOK_FINISHED, run.step, ref=run.item.ref, reason=state.value)
    if not run.step.open and run.step.state is StepState.GATING:
        _close(turn, run.step)


def _close(turn: Turn, step: StepRun) -> None:
    trouble = step.trouble or _failed_beside_hooks(turn, step)
    if trouble is None:
        _pass_gate(turn, step)
    else:
        _fail_gate(turn, step, trouble)


def _failed_beside_hooks(turn: Turn, step: StepRun) -> words.Trouble | None:
    """Where hooks alone were waited for, what has failed by now fails the step all the same."""
    rules = step.rules
    hooked = any(run.item.hook is not None for run in step.items)
    if rules.gates_last or not step.step.last or not hooked:
        return None
    beside = (run for run in step.items if run.item.hook is None and run.written is not None)
    for run in beside:
        weighed = weigh(run, turn.now)
        if weighed.weight is Weight.FAILS and run.item.deed is not Deed.DELETE:
            return words.Trouble(weighed.reason, _told_failure(run, weighed), weighed.final)
    return None


def _fail_gate(turn: Turn, step: StepRun, trouble: words.Trouble) -> None:
    retry = step.rules.retry
    final = not retry.gates or (trouble.final and not retry.whole)
    failed(turn, step, trouble.reason, trouble.sentence, final=final)


def _pass_gate(turn: Turn, step: StepRun) -> None:
    opened = tuple(
        (run.spot, run.item.digest, run.written.uid)
        for run in step.items
        if run.written is not None and run.item.deed is not Deed.DELETE
    )
    hooks = tuple(run.spot for run in step.items if run.item.hook is not None and run.written)
    if hooks:
        turn.ask(step.unit)
    turn.tell(Told.GATE_OPENED, step)
    turn.order(words.Remember(step.step.id, opened, hooks))
    passed(turn, step)


def _is_overdue(turn: Turn, step: StepRun) -> bool:
    """Whether a gate has waited too long, or in too deep a silence; it fails then."""
    quiet = step.rules.quiet
    late = step.deadline is not None and turn.now >= step.deadline
    silent = bool(quiet) and turn.now >= step.active_at + quiet
    if (late or silent) and not _is_sure(turn, step):
        return False
    if late:
        return _fail_waiting(turn, step, "Deadline", "took too long")
    if silent:
        return _fail_waiting(turn, step, "Quiet", "nothing happened for too long")
    if quiet:
        turn.ring_at(Ms(step.active_at + quiet), step)
    return False


def _fail_waiting(turn: Turn, step: StepRun, reason: str, sentence: str) -> bool:
    held = next((run for run in step.items if run.state is ItemState.GATING), None)
    if held is not None:
        why = f": {held.waits}" if held.waits else ""
        sentence = f"{held.item.ref} {sentence}{why}"
    _fail_gate(turn, step, words.Trouble(reason, sentence))
    return True


def tell_wait(turn: Turn, run: ItemRun, reason: str, sentence: str) -> None:
    """Say what a gate waits for, once for each reason."""
    if run.waits == sentence:
        return
    run.waits = sentence
    step, ref, until = run.step, run.item.ref, run.step.deadline or Ms(0)
    turn.tell(Told.GATE_WAITING, step, ref=ref, reason=reason, sentence=sentence, until=until)
