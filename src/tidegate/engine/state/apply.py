"""Writes of a step: batch after batch, all objects of a batch at once."""

from __future__ import annotations

from tidegate.engine import messages
from tidegate.engine.fences import is_older
from tidegate.engine.state.rollout import DecisionContext, ItemRun, ItemState, StepRun
from tidegate.engine.state.start_order import fail_step
from tidegate.engine.state.step_gates import emit_wait, enter_gate, set_deadline, settle_item
from tidegate.model.k8s.objects import Propagation
from tidegate.model.plans.change import DiffAction
from tidegate.model.plans.plan import AWAIT_ACTIONS, ItemAction, PlanItem
from tidegate.model.rollouts.event import OPTED_OUT, EventType, StepState
from tidegate.model.times import Ms
from tidegate.model.units.release_history import DriftMode
from tidegate.model.units.semantics import OnDisappear

UNCONFIRMED = "Unconfirmed"
UNCONFIRMED_MESSAGE = "deletion requires confirmation"
CHANGED = "Changed"
UNMANAGED_MESSAGE = "the object opts out of reconciliation"
DRIFT_DISABLED_MESSAGE = "already deployed, and drift detection is disabled"
DRIFTED = "Drifted"
FINISHED_MESSAGE = "already finished with the same manifest and removed itself"
MAX_REAPPLIES = 3
"""How often an object that others delete or change is written again before its step fails."""
WRITTEN_STATES = frozenset({ItemState.GATING, ItemState.PASSED})


def handle_step_compared(context: DecisionContext, trigger: messages.StepCompared) -> None:
    """Store the compare results of a step and start its writes, or fail the step."""
    step = context.rollout.steps[trigger.step]
    context.receive_reply(step.unit)
    if step.state is not StepState.CHECKING:
        return
    if trigger.failure is not None:
        fail_step(context, step, trigger.failure)
        return
    for run, compared in zip(step.items, trigger.objects, strict=True):
        run.compare_result, run.live_before, run.drift = (
            compared.result,
            compared.live,
            compared.drift,
        )
        run.fields, run.replaces = compared.fields, compared.replaces
        run.is_unknown = False
    context.set_step_state(step, StepState.APPLYING)
    set_deadline(context, step)
    start_batches(context, step)


def start_batches(context: DecisionContext, step: StepRun) -> None:
    """Start batches until one has pending writes; after the last batch comes the gate."""
    while (
        not step.pending_writes
        and not context.is_draining(step)
        and not _awaits_confirmation(context, step)
        and not _is_pausing(context, step)
    ):
        failure = step.failure
        if failure is not None and (
            step.semantics.stops_on_rejection or _has_failed_deletion(step)
        ):
            if not _withdraw(context, step):
                fail_step(context, step, failure)
            return
        if step.next_batch == len(step.step.batches):
            enter_gate(context, step)
            return
        first = sum(len(batch) for batch in step.step.batches[: step.next_batch])
        if _delete_earlier_hooks(context, step, first):
            return
        for run in step.items[first : first + len(step.step.batches[step.next_batch])]:
            _process_item(context, run)
        step.next_batch += 1


def _is_pausing(context: DecisionContext, step: StepRun) -> bool:
    """Return whether the step pauses between a deletion of earlier hooks and its writes."""
    if context.now >= step.batches_not_before:
        return False
    context.set_timer(step.batches_not_before, step)
    return True


def _delete_earlier_hooks(context: DecisionContext, step: StepRun, first: int) -> bool:
    """Delete the earlier hooks of a step before its first write; return whether there are some.

    Argo CD deletes them in a run of the wave of their own, after what it prunes, and pauses:
    `runTasks` of gitops-engine/pkg/sync/sync_context.go.
    """
    if not step.semantics.pause or step.items[first].item.action is ItemAction.DELETE:
        return False
    earlier_hooks = [run for run in step.items[first:] if _is_earlier_hook(run)]
    for run in earlier_hooks:
        _delete_item(context, run)
    if earlier_hooks and not step.is_in_last_wave:
        step.batches_not_before = Ms(context.now + step.semantics.pause)
    return bool(earlier_hooks)


def _has_failed_deletion(step: StepRun) -> bool:
    """Return whether a deletion was rejected; with any semantics, such a wave applies nothing."""
    failed_runs = (run for run in step.items if run.state is ItemState.FAILED)
    return any(run.item.action is ItemAction.DELETE or _is_earlier_hook(run) for run in failed_runs)


def _is_earlier_hook(run: ItemRun) -> bool:
    """Return whether the hook of an earlier sync still has to be deleted."""
    is_recreated = run.compare_result is messages.CompareResult.RECREATE
    return is_recreated and run.item.hook is not None and run.live_before is not None


def _withdraw(context: DecisionContext, step: StepRun) -> bool:
    """Delete what an on-failure step has created if one of its writes was rejected.

    Return whether there was something to delete.
    """
    if not (step.step.only_on_failure and step.unit.unit.policy.delete_created_on_rejection):
        return False
    created = [run for run in step.items if run.state is ItemState.GATING and _is_created(run)]
    for run in created:
        run.live_before = run.written
        _delete_item(context, run)
        run.state = ItemState.WITHDRAWN
    return bool(created)


def _emit_withdrawn(
    context: DecisionContext,
    run: ItemRun,
    outcome: messages.WrittenObject | messages.Failure | None,
) -> None:
    """Emit the result of such a deletion; the step fails with its original failure either way."""
    step, ref = run.step, run.item.ref
    if isinstance(outcome, messages.Failure):
        message = outcome.message
        context.emit(
            EventType.OBJECT_REFUSED, step, ref=ref, reason=outcome.reason, message=message
        )
    else:
        context.emit(EventType.OBJECT_PRUNED, step, ref=ref)


def _is_created(run: ItemRun) -> bool:
    return (
        run.item.hook is None
        and run.item.action is ItemAction.APPLY
        and run.compare_result is messages.CompareResult.ABSENT
    )


def _process_item(context: DecisionContext, run: ItemRun) -> None:
    """Start the write or deletion that an object needs, or pass it."""
    if run.item.action is ItemAction.DELETE:
        _prune_item(context, run)
        return
    if run.item.action in AWAIT_ACTIONS:
        run.state = ItemState.GATING
        return
    match run.compare_result:
        case messages.CompareResult.ABSENT | messages.CompareResult.DIFFERENT:
            _apply_item(context, run)
        case messages.CompareResult.IN_SYNC:
            _set_written(context, run, run.live_before)
        case messages.CompareResult.FINISHED | messages.CompareResult.UNMANAGED:
            _skip_item(context, run)
        case messages.CompareResult.RECREATE:
            is_deleted = run.live_before is None  # an earlier hook
            (_apply_item if is_deleted else _delete_item)(context, run)
        case messages.CompareResult.IMMUTABLE:
            message = "differs from the live object in immutable fields"
            _fail_item(context, run, messages.Failure("Immutable", message, final=True))


def _skip_item(context: DecisionContext, run: ItemRun) -> None:
    """Pass an object that needs no write and no wait."""
    run.state = ItemState.PASSED
    event_type, reason, message = EventType.OBJECT_UNCHANGED, "Finished", FINISHED_MESSAGE
    if run.drift is not None:
        event_type, reason, message = EventType.OBJECT_DRIFTED, DRIFTED, run.drift.message
    elif run.compare_result is messages.CompareResult.UNMANAGED and _is_drift_detection_off(run):
        reason, message = "DriftDetectionDisabled", DRIFT_DISABLED_MESSAGE
    elif run.compare_result is messages.CompareResult.UNMANAGED:
        event_type, reason, message = EventType.OBJECT_SKIPPED, OPTED_OUT, UNMANAGED_MESSAGE
    context.emit_object_event(event_type, run, DiffAction.KEEP, reason=reason, message=message)


def _is_drift_detection_off(run: ItemRun) -> bool:
    return (
        run.step.unit.unit.policy.drift is DriftMode.DISABLED
        and run.item.action is not ItemAction.IGNORE
    )


def _prune_item(context: DecisionContext, run: ItemRun) -> None:
    if run.compare_result is messages.CompareResult.ABSENT:
        run.state = ItemState.PASSED
    elif _lacks_confirmation(run):
        run.state = ItemState.PASSED
        context.emit_object_event(
            EventType.OBJECT_SKIPPED,
            run,
            DiffAction.KEEP,
            reason=UNCONFIRMED,
            message=UNCONFIRMED_MESSAGE,
        )
    else:
        _delete_item(context, run)


def _lacks_confirmation(run: ItemRun) -> bool:
    """Return whether the deletion of an existing object needs a confirmation that is missing."""
    return (
        run.item.requires_confirmation
        and run.compare_result is not messages.CompareResult.ABSENT
        and not run.step.unit.unit.policy.confirmed
    )


def _awaits_confirmation(context: DecisionContext, step: StepRun) -> bool:
    """Return whether a step waits for a confirmation.

    With Argo CD semantics the whole step waits.
    """
    if not step.semantics.waits_for_confirmation:
        return False
    unconfirmed = [run for run in step.items if _lacks_confirmation(run)]
    for run in unconfirmed:
        emit_wait(context, run, UNCONFIRMED, UNCONFIRMED_MESSAGE)
    return bool(unconfirmed)


def _delete_item(context: DecisionContext, run: ItemRun) -> None:
    run.state = ItemState.DELETING
    _expect_reply(context, run)
    uid = run.live_before.uid if run.live_before else ""
    context.issue(messages.Delete(run.step.step.id, run.object_ref, uid, _propagation(run.item)))


def _propagation(item: PlanItem) -> Propagation:
    """Return the propagation policy; a recreated object does not wait for its dependents.

    Like `kubectl replace`.
    """
    is_final_deletion = item.action is ItemAction.DELETE or item.hook is not None
    return item.options.propagation if is_final_deletion else Propagation.BACKGROUND


def _apply_item(context: DecisionContext, run: ItemRun) -> None:
    step = run.step
    run.state = ItemState.WRITING
    urgent = not step.pending_writes and not step.next_batch
    _expect_reply(context, run)
    context.issue(messages.Apply(step.step.id, run.object_ref, run.item, urgent))


def _expect_reply(context: DecisionContext, run: ItemRun) -> None:
    run.awaits_reply = True
    run.step.pending_writes += 1
    context.expect_reply(run.step.unit)


def handle_write_finished(context: DecisionContext, trigger: messages.WriteFinished) -> None:
    """Handle the result of an apply or a deletion, and continue the step."""
    context.receive_reply(context.rollout.steps[trigger.step].unit)
    runs = context.rollout.items.get(trigger.object_ref, ())
    run = next(
        (
            candidate
            for candidate in runs
            if candidate.awaits_reply and candidate.step.step.id == trigger.step
        ),
        None,
    )
    if run is None:
        return
    run.awaits_reply = False
    run.is_unknown = isinstance(trigger.outcome, messages.Failure) and trigger.outcome.is_unknown
    match run.state, trigger.outcome:
        case ItemState.WITHDRAWN, outcome:
            run.step.pending_writes -= 1
            _emit_withdrawn(context, run, outcome)
        case ((ItemState.WRITING | ItemState.DELETING), messages.Failure() as failure):
            run.step.pending_writes -= 1
            _fail_item(context, run, failure)
        case ItemState.DELETING, outcome if outcome is None or run.live_before is None:
            _handle_deleted(context, run)
        case ItemState.DELETING, messages.WrittenObject() as terminating if (
            run.item.action is ItemAction.DELETE
        ):
            run.step.pending_writes -= 1
            run.written, run.state = terminating, ItemState.GATING
        case ItemState.DELETING, _:
            pass  # its end is reported later
        case ItemState.WRITING, messages.WrittenObject() as written:
            run.step.pending_writes -= 1
            _set_written(context, run, written)
        case _:
            run.step.pending_writes -= 1  # the step was restarted in between
    _continue_step(context, run.step)


def _continue_step(context: DecisionContext, step: StepRun) -> None:
    if step.state is StepState.APPLYING:
        start_batches(context, step)
    elif step.state is not StepState.GATING:
        return
    elif step.failure is not None and not step.semantics.settles_before_failing:
        fail_step(context, step, step.failure)
    else:
        context.set_timer(context.now, step)


def _set_written(
    context: DecisionContext, run: ItemRun, written: messages.WrittenObject | None
) -> None:
    run.written = written
    run.written_at = context.now
    run.state = ItemState.GATING
    run.probe_passed = False
    if written is None or not written.changed:
        context.emit_object_event(EventType.OBJECT_UNCHANGED, run, DiffAction.KEEP)
        return
    fields = () if run.reapply_count else run.fields
    context.emit_object_event(EventType.OBJECT_WRITTEN, run, _operation(run), fields=fields)


def _operation(run: ItemRun) -> DiffAction:
    """Return what a write has done to an object, by its state before."""
    if run.reapply_count:
        return DiffAction.CHANGE
    if run.compare_result is messages.CompareResult.ABSENT:
        return DiffAction.CREATE
    if run.compare_result is messages.CompareResult.RECREATE:
        return DiffAction.RECREATE
    return DiffAction.REPLACE if run.replaces else DiffAction.CHANGE


def _fail_item(context: DecisionContext, run: ItemRun, failure: messages.Failure) -> None:
    run.state = ItemState.FAILED
    step, ref, reason, message = run.step, run.item.ref, failure.reason, failure.message
    context.emit(EventType.OBJECT_REFUSED, step, ref=ref, reason=reason, message=message)
    if step.failure is None or failure.final:
        step.failure = messages.Failure(reason, f"{ref}: {message}", failure.final, ref=ref)


def _handle_deleted(context: DecisionContext, run: ItemRun) -> None:
    """Finish a deletion: create the new object in its place, or pass."""
    run.step.pending_writes -= 1
    if run.item.action is ItemAction.DELETE:
        run.state = ItemState.PASSED
        context.emit_object_event(EventType.OBJECT_PRUNED, run, DiffAction.PRUNE)
    elif run.item.hook is not None and run.step.semantics.pause:
        run.state, run.live_before = ItemState.PENDING, None
    else:
        _apply_item(context, run)


def handle_object_deleted(context: DecisionContext, trigger: messages.ObjectDeleted) -> None:
    """Handle the deletion of an object: expected, awaited, or by others."""
    for run in context.rollout.items.get(trigger.object_ref, ()):
        if run.state is ItemState.DELETING and _is_compared_object(run, trigger.uid):
            if run.awaits_reply:
                # A reply is due, which must not be matched to a later deletion.
                run.live_before = None
                continue
            _handle_deleted(context, run)
            _continue_step(context, run.step)
        elif run.item.action in AWAIT_ACTIONS:
            run.health, run.compare_result = None, messages.CompareResult.ABSENT
            _continue_step(context, run.step)
        elif run.written and run.written.uid == trigger.uid and _is_still_needed(run):
            _handle_vanished(context, run)
        elif (
            run.item.requires_confirmation
            and run.state is ItemState.PENDING
            and _is_compared_object(run, trigger.uid)
        ):
            run.compare_result = messages.CompareResult.ABSENT
            _continue_step(context, run.step)


def _is_compared_object(run: ItemRun, uid: str) -> bool:
    """Return whether the uid is that of the live object when the step was compared."""
    return run.live_before is not None and run.live_before.uid == uid


def handle_replaced_object(context: DecisionContext, trigger: messages.HealthChanged) -> None:
    """Handle an object that another one of the same name has replaced."""
    for run in context.rollout.items.get(trigger.object_ref, ()):
        written = run.written
        if written is None or written.uid == trigger.uid or not _is_still_needed(run):
            continue
        if run.step.semantics.fenced and not is_older(trigger.version, written.version):
            _handle_vanished(context, run)


def _is_still_needed(run: ItemRun) -> bool:
    """Return whether the gate of a step still needs what we wrote.

    An object that passed must still be healthy when the gate opens; a finished one may remove
    itself.
    """
    if run.state is ItemState.GATING:
        return True
    has_passed = run.state is ItemState.PASSED and run.item.is_gating and run.item.hook is None
    has_finished = run.written is not None and run.written.uid == run.finished_uid
    is_gating = run.step.semantics.fenced and run.step.state is StepState.GATING
    return has_passed and is_gating and not has_finished


def handle_verify_finished(context: DecisionContext, trigger: messages.VerifyFinished) -> None:
    """Continue the gate of a verified object; write an object again that others have changed."""
    for run in context.rollout.items.get(trigger.object_ref, ()):
        step = run.step
        is_gating = step.state is StepState.GATING and run.state in WRITTEN_STATES
        # Generations of an object that was deleted meanwhile say nothing about its successor.
        is_current = run.written is not None and run.written.uid == trigger.uid
        if step.step.id != trigger.step or not is_gating or not is_current:
            continue
        if trigger.failure is None:
            run.verified_version = (trigger.generation, trigger.version)
            context.set_timer(context.now, step)
        else:
            emit_wait(context, run, trigger.failure.reason, trigger.failure.message)
            _reapply(context, run, trigger.failure)


def _handle_vanished(context: DecisionContext, run: ItemRun) -> None:
    step = run.step
    if step.is_final:
        return  # the step failed, and its hooks may be deleted
    if run.item.action is ItemAction.DELETE:
        context.emit_object_event(EventType.OBJECT_PRUNED, run, DiffAction.PRUNE)
        settle_item(context, run, ItemState.PASSED)
        return
    # The message of `gitops-engine/pkg/sync/sync_context.go` in Argo CD 3.6.
    _reapply(context, run, messages.Failure("Missing", "is missing, it might have been deleted"))


def _reapply(context: DecisionContext, run: ItemRun, failure: messages.Failure) -> None:
    """Write an object again that others have deleted or changed, a few times; then fail the step.

    An object that had passed keeps the gate closed again.
    """
    step = run.step
    step.gating_count += run.state is ItemState.PASSED
    can_reapply = step.semantics.on_disappear is OnDisappear.REAPPLY
    if can_reapply and run.reapply_count < MAX_REAPPLIES and not context.is_draining(step):
        run.reapply_count += 1
        run.health = None
        run.verified_version = (0, "")
        _apply_item(context, run)
        set_deadline(context, step)
        return
    ref = run.item.ref
    message = f"{ref} {failure.message}"
    # A vanished object is retried a few times; another writer would not stop.
    final = failure.reason == CHANGED and not step.semantics.retry.retries_gates
    step.failure = step.failure or messages.Failure(failure.reason, message, final, ref=ref)
    if step.semantics.settles_before_failing:
        settle_item(context, run, ItemState.FAILED)
    else:
        _continue_step(context, step)
