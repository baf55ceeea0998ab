"""Gates of steps: each object is evaluated when its health changes, or at a given time."""

from __future__ import annotations

import msgspec

from tidegate.engine import messages
from tidegate.engine.fences import FenceReason, is_older, needs_verification
from tidegate.engine.state.gates import GateDecision, GateResult, evaluate_gate, find_override
from tidegate.engine.state.rollout import DecisionContext, ItemRun, ItemState, StepRun
from tidegate.engine.state.start_order import fail_step, pass_step
from tidegate.model.plans.change import DiffAction
from tidegate.model.plans.plan import ItemAction
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.times import Ms

FIRST_PROBE_INTERVAL = Ms(50)
WAITING_STATES = frozenset({ItemState.DELETING, ItemState.GATING})
MAX_PROBE_INTERVAL = Ms(2_000)


def enter_gate(context: DecisionContext, step: StepRun) -> None:
    """Start waiting at the gate of a step whose objects are all written."""
    step.applied_at = step.changed_at = context.now
    step.gating_count = sum(run.state is ItemState.GATING for run in step.items)
    context.set_step_state(step, StepState.GATING)
    _pass_ungated(context, step)
    if not step.gating_count:
        _finish_gate(context, step)
        return
    set_deadline(context, step)
    if not step.is_in_last_wave:
        step.next_check_at = Ms(context.now + step.pause)
    check_gate(context, step)


def _pass_ungated(context: DecisionContext, step: StepRun) -> None:
    """Pass the objects that keep no gate closed: by policy, or because no step follows."""
    hooks_only = not step.semantics.gates_last and step.step.is_last
    for run in step.items:
        is_gated = run.item.hook is not None if hooks_only else run.item.is_gating
        if run.state is ItemState.GATING and not is_gated:
            if run.item.action is ItemAction.DELETE:
                context.emit_object_event(EventType.OBJECT_PRUNED, run, DiffAction.PRUNE)
            run.state = ItemState.PASSED
            step.gating_count -= 1


def set_deadline(context: DecisionContext, step: StepRun) -> None:
    """Set the deadline of a step, never shorter than the readiness timeouts of its objects."""
    foundation_limit = step.semantics.prerequisite_deadline if step.step.is_prerequisite else Ms(0)
    minimum = foundation_limit or _special_timeout(step) or step.semantics.deadline
    if minimum:
        budgets = (
            ()
            if step.semantics.is_deadline_exact
            else (run.item.readiness_timeout for run in step.items)
        )
        longest = max(budgets, default=minimum)
        step.deadline = Ms(context.now + max(minimum, longest))
        context.set_timer(step.deadline, step)


def extend_deadlines(context: DecisionContext, trigger: messages.ClusterAnswered) -> None:
    """Give the running steps of a cluster the time in which its controllers could do nothing."""
    for step in context.rollout.steps.values():
        if step.step.cluster == trigger.cluster and step.deadline is not None and not step.is_final:
            step.deadline = Ms(step.deadline + trigger.silence)
            step.changed_at = Ms(step.changed_at + trigger.silence)
            context.set_timer(step.deadline, step)


def _special_timeout(step: StepRun) -> Ms:
    """Return the separate timeout of on-failure steps and tests; 0 if there is none."""
    policy = step.unit.unit.policy
    if step.step.only_on_failure:
        return policy.remediation_timeout
    return policy.test_timeout if step.step.is_test else Ms(0)


def _check_interval(step: StepRun) -> Ms:
    """Return how often a gate is checked; 0 means whenever the health of an object changes."""
    foundation_interval = (
        step.semantics.prerequisite_interval if step.step.is_prerequisite else Ms(0)
    )
    return foundation_interval or step.semantics.gate_check_interval


def handle_health_changed(context: DecisionContext, trigger: messages.HealthChanged) -> None:
    """Store a health verdict and check the gates that wait for the object."""
    for run in context.rollout.items.get(trigger.object_ref, ()):
        previous = run.health
        if previous and previous.uid == trigger.uid and is_older(trigger.version, previous.version):
            continue
        run.health = trigger
        step = run.step
        if run.state is ItemState.DELETING:
            emit_deletion(context, run)
        elif step.state is StepState.GATING:
            if run.state is ItemState.PASSED and run.item.is_gating:
                _needs_verification(context, run)
                _reopen_overridden(run)
            if run.state is ItemState.GATING:
                step.changed_at = context.now
                _check_changed(context, run)


def _reopen_overridden(run: ItemRun) -> None:
    """Wait again for an object that had passed, if another client keeps its pods from running."""
    override = find_override(run)
    if override is not None and override.is_certain:
        run.state = ItemState.GATING
        run.step.gating_count += 1


def _check_changed(context: DecisionContext, run: ItemRun) -> None:
    """Check the gate of a changed object now, or when the semantics do."""
    step, delay = run.step, run.step.semantics.gate_check_delay
    if _check_interval(step) or step.next_check_at is not None:
        return
    if delay:
        step.next_check_at = Ms(context.now + delay)
        context.set_timer(step.next_check_at, step)
    else:
        _check_item(context, run)


def handle_probe_finished(context: DecisionContext, trigger: messages.ProbeFinished) -> None:
    """Continue the gates that wait for a probe; retry a failed probe after a delay."""
    for run in context.rollout.items.get(trigger.object_ref, ()):
        if not run.is_probing or run.step.step.id != trigger.step:
            continue
        run.is_probing = False
        run.probe_passed = trigger.failure is None
        if run.state is not ItemState.GATING or run.step.state is not StepState.GATING:
            continue
        if trigger.failure is None:
            _check_item(context, run)
            continue
        emit_wait(context, run, trigger.failure.reason, trigger.failure.message)
        run.probe_count += 1
        delay = min(MAX_PROBE_INTERVAL, FIRST_PROBE_INTERVAL << min(run.probe_count, 10))
        context.set_timer(Ms(context.now + delay), run.step)
    if trigger.failure is None:
        context.issue(messages.Preflight(trigger.object_ref))


def handle_status_read(context: DecisionContext, trigger: messages.StatusRead) -> None:
    """Check the gate of a step whose objects have just been read again."""
    step = context.rollout.steps.get(trigger.step)
    if step is None or not step.is_reading_status:
        return
    step.is_reading_status, step.has_fresh_status = False, True
    if step.state is StepState.GATING:
        step.next_check_at = None  # the check is early
        check_gate(context, step)
    step.has_fresh_status = False


def _has_fresh_status(context: DecisionContext, step: StepRun) -> bool:
    """Return whether the status was just read; otherwise request that.

    A timeout alone fails nothing: a watch may have been interrupted and have missed a change.
    """
    if not step.has_fresh_status and not step.is_reading_status:
        step.is_reading_status = True
        gating = (run for run in step.items if run.state is ItemState.GATING)
        objects = ((run.object_ref, run.written.uid if run.written else "") for run in gating)
        context.issue(messages.ReadStatus(step.step.id, tuple(objects)))
    return step.has_fresh_status


def check_gate(context: DecisionContext, step: StepRun) -> None:
    """Evaluate every object that still keeps the gate of a step closed."""
    interval = _check_interval(step)
    if step.next_check_at is not None and context.now < step.next_check_at:
        context.set_timer(step.next_check_at, step)
        return
    step.next_check_at = None
    for run in step.items:
        if run.state is ItemState.GATING:
            _check_item(context, run)
        if step.state is not StepState.GATING:
            return
    if not step.gating_count:
        _finish_gate(context, step)
        return
    if not _fail_if_overdue(context, step) and interval:
        step.next_check_at = Ms(context.now + interval)
        context.set_timer(step.next_check_at, step)


def _check_item(context: DecisionContext, run: ItemRun) -> None:
    if run.item.action is ItemAction.DELETE:
        emit_deletion(context, run)
    elif not _needs_verification(context, run):
        _apply_result(context, run, evaluate_gate(run, context.now))


def _apply_result(context: DecisionContext, run: ItemRun, result: GateResult) -> None:
    match result.decision:
        case GateDecision.OPENS:
            if run.health is not None and run.health.verdict.is_final:
                run.finished_uid = run.health.uid
            _emit_ready(context, run)
            _emit_unproven(context, run, result.unproven)
            settle_item(context, run, ItemState.PASSED)
        case GateDecision.WAITS:
            emit_wait(context, run, result.reason, result.message)
            if result.recheck_at is not None:
                context.set_timer(result.recheck_at, run.step)
        case GateDecision.PROBES:
            if not run.is_probing:
                run.is_probing = True
                context.issue(messages.Probe(run.step.step.id, run.object_ref))
        case GateDecision.FAILS:
            _fail_item(context, run, result)


def _needs_verification(context: DecisionContext, run: ItemRun) -> bool:
    """Return whether the object must be verified first, and request that.

    A verdict counts only while the object still has what we wrote.
    """
    written, health = run.written, run.health
    if not run.step.semantics.fenced or written is None or health is None:
        return False
    if not needs_verification(written, health, run.verified_version):
        return False
    context.issue(messages.Verify(run.step.step.id, run.object_ref))
    return True


def _emit_ready(context: DecisionContext, run: ItemRun) -> None:
    """Emit that an object that was waited for is ready."""
    if run.wait_message:
        context.emit(EventType.OBJECT_READY, run.step, ref=run.item.ref)
        run.wait_message = ""


def _emit_unproven(context: DecisionContext, run: ItemRun, unproven: FenceReason | None) -> None:
    if unproven is not None:
        event_type, ref = EventType.GATE_UNPROVEN, run.item.ref
        context.emit(
            event_type, run.step, ref=ref, reason=unproven.reason, message=unproven.message
        )


def _fail_item(context: DecisionContext, run: ItemRun, result: GateResult) -> None:
    step = run.step
    if result.is_timeout and not _has_fresh_status(context, step):
        return
    if step.failure is None or result.final:
        step.failure = _gate_failure(run, result)
    if step.semantics.settles_before_failing:
        settle_item(context, run, ItemState.FAILED)
    else:
        _finish_gate(context, step)


def _gate_failure(run: ItemRun, result: GateResult) -> messages.Failure:
    ref = run.item.ref
    message = f"{ref}: {result.message or result.reason}"
    return messages.Failure(result.reason, message, result.final, ref=ref)


def settle_item(context: DecisionContext, run: ItemRun, state: ItemState) -> None:
    """Set the final state of an object, which then no longer keeps the gate closed."""
    run.state = state
    run.step.gating_count -= 1
    if run.item.hook is not None:
        context.emit(EventType.HOOK_FINISHED, run.step, ref=run.item.ref, reason=state.value)
    if not run.step.gating_count and run.step.state is StepState.GATING:
        _finish_gate(context, run.step)


def _finish_gate(context: DecisionContext, step: StepRun) -> None:
    failure = step.failure or _find_failed_object(context, step)
    if failure is None:
        _pass_gate(context, step)
    else:
        _fail_gate(context, step, failure)


def _find_failed_object(context: DecisionContext, step: StepRun) -> messages.Failure | None:
    """Return the failure of an ordinary object in a step that waited only for its hooks."""
    semantics = step.semantics
    has_hooks = any(run.item.hook is not None for run in step.items)
    if semantics.gates_last or not step.step.is_last or not has_hooks:
        return None
    others = (run for run in step.items if run.item.hook is None and run.written is not None)
    for run in others:
        result = evaluate_gate(run, context.now)
        if result.decision is GateDecision.FAILS and run.item.action is not ItemAction.DELETE:
            return _gate_failure(run, result)
    return None


def _fail_gate(context: DecisionContext, step: StepRun, failure: messages.Failure) -> None:
    retry = step.semantics.retry
    final = not retry.retries_gates or (failure.final and not retry.restarts_unit)
    fail_step(context, step, msgspec.structs.replace(failure, final=final))


def _pass_gate(context: DecisionContext, step: StepRun) -> None:
    opened_gates = tuple(
        (run.object_ref, run.item.digest, run.written.uid)
        for run in step.items
        if run.written is not None and run.item.action is not ItemAction.DELETE
    )
    hooks = tuple(run.object_ref for run in step.items if run.item.hook is not None and run.written)
    if hooks:
        context.expect_reply(step.unit)
    context.emit(EventType.GATE_OPENED, step)
    context.issue(messages.SaveJournal(step.step.id, opened_gates, hooks))
    pass_step(context, step)


def check_deletions(context: DecisionContext, step: StepRun) -> None:
    """Fail a step in which an object has not made room before the deadline."""
    is_deleting = any(run.state is ItemState.DELETING for run in step.items)
    if is_deleting and step.deadline is not None and context.now >= step.deadline:
        _fail_waiting(context, step, "Deadline", "timed out")


def _fail_if_overdue(context: DecisionContext, step: StepRun) -> bool:
    """Fail a gate that has waited, or has been quiet, for too long; return whether it did."""
    quiet_limit = step.semantics.idle_timeout
    is_late = step.deadline is not None and context.now >= step.deadline
    is_quiet = bool(quiet_limit) and context.now >= step.changed_at + quiet_limit
    if (is_late or is_quiet) and not _has_fresh_status(context, step):
        return False
    if is_late:
        return _fail_waiting(context, step, "Deadline", "timed out")
    if is_quiet:
        return _fail_waiting(
            context, step, "IdleTimeout", "made no progress before the idle timeout"
        )
    if quiet_limit:
        context.set_timer(Ms(step.changed_at + quiet_limit), step)
    return False


def _fail_waiting(context: DecisionContext, step: StepRun, reason: str, message: str) -> bool:
    waiting = next((run for run in step.items if run.state in WAITING_STATES), None)
    ref = waiting.item.ref if waiting is not None else None
    if waiting is not None:
        cause = f": {waiting.wait_message}" if waiting.wait_message else ""
        message = f"{ref} {message}{cause}"
    _fail_gate(context, step, messages.Failure(reason, message, ref=ref))
    return True


def emit_deletion(context: DecisionContext, run: ItemRun) -> None:
    """Emit what an object that is being deleted still waits for."""
    before = run.live_before if run.state is ItemState.DELETING else run.written
    health, uid = run.health, "" if before is None else before.uid
    is_known = health is not None and health.uid == uid
    message = health.deletion if health is not None and is_known else messages.DELETING
    if message:
        emit_wait(context, run, "Deleting", message)


def emit_wait(context: DecisionContext, run: ItemRun, reason: str, message: str) -> None:
    """Emit what a gate waits for, once for each message."""
    if run.wait_message == message:
        return
    run.wait_message = message
    step, ref, until = run.step, run.item.ref, run.step.deadline or Ms(0)
    context.emit(EventType.GATE_WAITING, step, ref=ref, reason=reason, message=message, until=until)
