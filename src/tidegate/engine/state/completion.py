"""Completion of units, one by one, and of the rollout with the last of them."""

from __future__ import annotations

from tidegate.engine.messages import (
    ApprovalGranted,
    DeleteHooks,
    HooksDeleted,
    JournalSaved,
    LeaseRequested,
    Refresh,
    RefreshFinished,
    ReleaseLease,
    StopRequested,
)
from tidegate.engine.state.rollout import DecisionContext, StepRun, UnitRun
from tidegate.engine.state.start_conditions import free_slot
from tidegate.engine.state.start_order import (
    exclude_unit,
    free_idle_slot,
    settle_child,
    skip_dependents,
    start_unit,
)
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.units.release_history import HookRun

STARTED_STATES = frozenset({StepState.CHECKING, StepState.APPLYING, StepState.GATING})


def handle_stop_requested(context: DecisionContext, trigger: StopRequested) -> None:
    """Start nothing more of one unit, or of all units."""
    if trigger.unit is None:
        context.rollout.stop_reason = trigger.reason
        return
    unit = context.rollout.units.get(trigger.unit)
    if unit is not None and not unit.ended and not unit.stop_reason:
        unit.stop_reason = trigger.reason
        context.touched_units[trigger.unit] = unit


def handle_unblocked(context: DecisionContext, trigger: ApprovalGranted | RefreshFinished) -> None:
    """Continue a step or unit after an approval or a finished refresh."""
    if isinstance(trigger, ApprovalGranted):
        _approve(context, trigger)
        return
    unit = context.rollout.units.get(trigger.unit)
    context.rollout.is_final_refresh_pending = False
    if unit is None:
        return
    unit.needs_refresh = unit.refresh_requested = False
    if trigger.failure is not None:
        context.touched_units[trigger.unit] = unit
        exclude_unit(context, unit, trigger.failure)
    start_unit(context, unit)


def _approve(context: DecisionContext, trigger: ApprovalGranted) -> None:
    """Approve a step at its barrier, or a unit with all of its barriers."""
    step = context.rollout.steps.get(trigger.step)
    if step is not None:
        step.approved = True
    unit = context.rollout.units.get(trigger.unit) if trigger.unit else step.unit if step else None
    if unit is not None:
        unit.approved = unit.approved or trigger.unit is not None
        start_unit(context, unit)


def handle_lease_requested(context: DecisionContext, trigger: LeaseRequested) -> None:
    """Release the lease of a unit without writes in progress; its next step requests it again."""
    unit = context.rollout.units.get(trigger.unit)
    if unit is None or unit.ended or unit.needs_lease or unit.pending_replies:
        return
    if not any(step.is_writing for step in unit.steps):
        unit.needs_lease = True
        context.issue(ReleaseLease(trigger.unit))


def handle_hooks_deleted(context: DecisionContext, trigger: HooksDeleted) -> None:
    """Emit the hooks that were deleted."""
    unit = context.rollout.units[trigger.unit]
    context.receive_reply(unit)
    for object_ref in trigger.deleted_hooks:
        context.emit_unit_event(EventType.HOOK_DELETED, unit, ref=object_ref.ref, reason="")


def handle_journal_saved(context: DecisionContext, trigger: JournalSaved) -> None:
    """Count the reply to a `SaveJournal` command."""
    context.receive_reply(context.rollout.steps[trigger.step].unit)


def finish_idle(context: DecisionContext) -> None:
    """End the units, and the rollout, that have nothing left to do or are stopped."""
    rollout = context.rollout
    if rollout.ended or (rollout.is_being_superseded and not rollout.stop_reason):
        return
    while context.touched_units and not rollout.stop_reason:
        touched, context.touched_units = context.touched_units, {}
        for unit in touched.values():
            _finish_unit(context, unit)
    if (
        rollout.pending_replies
        or (rollout.running_units and not rollout.stop_reason)
        or _awaits_final_refresh(context)
    ):
        return
    rollout.ended = True
    message = rollout.stop_reason if rollout.running_units else rollout.abandon_reason
    result = (
        "failed"
        if rollout.failed and not rollout.running_units
        else "stopped"
        if message
        else "passed"
    )
    context.emit(
        EventType.ROLLOUT_FINISHED, reason=result, message=message if result == "stopped" else ""
    )


def _awaits_final_refresh(context: DecisionContext) -> bool:
    """Return whether a unit that may have more to deploy by now is checked for the last time."""
    rollout = context.rollout
    if rollout.stop_reason or rollout.failed or rollout.abandon_reason:
        return False
    if rollout.final_refresh_unit is not None:
        context.issue(Refresh(rollout.final_refresh_unit, is_last=True))
        rollout.final_refresh_unit, rollout.is_final_refresh_pending = None, True
    return rollout.is_final_refresh_pending


def _finish_unit(context: DecisionContext, unit: UnitRun) -> None:
    if unit.ended or unit.pending_replies:
        return
    if unit.stop_reason:
        _abandon(context, unit)
    elif unit.needs_lease and unit.is_unstarted:
        return  # its journal may still need cleaning up
    if unit.unfinished_steps:
        if not any(
            step.state in STARTED_STATES or _waits_for_children(step) for step in unit.steps
        ):
            free_idle_slot(context, unit)
        return
    if unit.has_hooks and not unit.stop_reason:
        unit.has_hooks = False
        context.expect_reply(unit)
        context.issue(
            DeleteHooks(unit.unit.id, failed=unit.failed, hook_runs=_hook_runs(context, unit))
        )
        return
    unit.ended = True
    context.rollout.running_units -= 1
    message = unit.stop_reason or unit.exclusion_reason
    context.emit_unit_event(EventType.UNIT_FINISHED, unit, reason=_result(unit), message=message)
    for next_unit in free_slot(unit):
        start_unit(context, next_unit)


def _hook_runs(context: DecisionContext, unit: UnitRun) -> tuple[HookRun, ...] | None:
    """Return the result of each hook if the unit is a Helm release, whose policies depend on it."""
    if unit.unit.policy.release is None:
        return None
    return (*unit.hook_runs(context.now), *unit.hook_runs(context.now, on_failure=True))


def _waits_for_children(step: StepRun) -> bool:
    """Return whether a step waits for child units, which occupies a worker (Flux)."""
    return step.state is StepState.WAITING and step.deadline is not None


def _abandon(context: DecisionContext, unit: UnitRun) -> None:
    """Skip the remaining steps of a stopped unit, and the steps that wait for them."""
    context.rollout.abandon_reason, unit.on_failure_steps = unit.stop_reason, []
    for step in unit.steps:
        if step.is_final:
            continue
        state = StepState.SUPERSEDED if step.state in STARTED_STATES else StepState.SKIPPED
        context.set_step_state(step, state, reason="Stopped", message=unit.stop_reason)
        settle_child(context, step)
        skip_dependents(context, step)


def _result(unit: UnitRun) -> str:
    if unit.stop_reason:
        return "stopped"
    if unit.failed:
        return "failed"
    skipped = any(
        step_run.state is StepState.SKIPPED
        for step_run in unit.steps
        if not step_run.step.only_on_failure
    )
    return "skipped" if skipped else "passed"
