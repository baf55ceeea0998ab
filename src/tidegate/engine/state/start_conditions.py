"""Conditions for the start of a step other than edges: barrier, sync window, lease, group slots."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.messages import AcquireLease, AwaitApproval, Refresh
from tidegate.engine.state.rollout import DecisionContext, StepRun, UnitRun
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.times import Ms
from tidegate.model.units.sync_window import find_window_block
from tidegate.model.units.unit import UnitId


def may_start(context: DecisionContext, step: StepRun) -> bool:
    """Return whether a step without unmet edges may start; request or emit what is missing."""
    if step.unit.is_remediating and not step.step.only_on_failure:
        return False
    is_allowed = (
        _passes_barrier(context, step)
        and _is_in_window(context, step)
        and _is_refreshed(context, step)
    )
    return is_allowed and _has_lease(context, step) and _has_slot(context, step)


def request_leases(context: DecisionContext, due_units: Iterable[UnitId]) -> None:
    """Acquire the leases of units that cannot start yet, so that later processes must ask us."""
    for unit in (context.rollout.units[name] for name in due_units):
        if unit.needs_lease and not unit.lease_requested:
            context.issue(
                AcquireLease(unit.unit.id, is_needed=False, is_unstarted=unit.is_unstarted)
            )


def _has_lease(context: DecisionContext, step: StepRun) -> bool:
    """Return whether we hold the lease of the unit; otherwise request it."""
    unit = step.unit
    if unit.needs_lease and not unit.lease_requested:
        unit.lease_requested = True
        context.issue(AcquireLease(unit.unit.id, is_needed=True, is_unstarted=unit.is_unstarted))
    return not unit.needs_lease


def _passes_barrier(context: DecisionContext, step: StepRun) -> bool:
    barrier = step.step.barrier
    if barrier is None or step.approved:
        return True
    if context.now >= barrier.until if barrier.until else step.unit.approved:
        return True
    if barrier.until:
        context.set_timer(barrier.until, step)
    else:
        _watch_approval(context, step.unit)
    _emit_wait(context, step, barrier.reason, barrier.message, barrier.until)
    return False


def _is_in_window(context: DecisionContext, step: StepRun) -> bool:
    """Return whether the sync windows of the unit allow its work to start or continue."""
    unit, policy = step.unit, step.unit.unit.policy
    if not policy.windows or not unit.has_work or step.approved:
        return True
    closed_window = find_window_block(
        policy.windows, context.now, is_manual=policy.is_manual, started_at=unit.window_started_at
    )
    if closed_window is None:
        unit.window_started_at = (
            context.now if unit.window_started_at is None else unit.window_started_at
        )
        return True
    if closed_window.until:
        context.set_timer(closed_window.until, step)
    _emit_wait(
        context,
        _reported_step(step),
        "Window",
        f"the {closed_window.window.title} blocks it",
        closed_window.until,
    )
    return False


def _is_refreshed(context: DecisionContext, step: StepRun) -> bool:
    """Return whether the source of the unit needs no check for a newer revision.

    Otherwise request it.
    """
    unit, policy = step.unit, step.unit.unit.policy
    if step.step.only_on_failure or (policy.uses_lookup and step.only_awaits):
        return True
    if unit.needs_refresh and not unit.refresh_requested:
        unit.refresh_requested = True
        context.issue(Refresh(unit.unit.id, unit.failure, unit.on_failure_hooks))
    return not unit.needs_refresh


def _reported_step(step: StepRun) -> StepRun:
    """Return the step to report; for one without objects, the next waiting one of its unit."""
    if not step.step.is_placeholder:
        return step
    waiting = (step_run for step_run in step.unit.steps if step_run.state is StepState.WAITING)
    return next((step_run for step_run in waiting if not step_run.step.is_placeholder), step)


def _has_slot(context: DecisionContext, step: StepRun) -> bool:
    """Return whether the unit has a slot or gets one now. Units without work need none."""
    unit, slots = step.unit, step.unit.slots
    if slots is None or unit.has_slot or not (slots.limit or unit.has_work):
        return True
    if unit.approved or slots.used < slots.limit:
        unit.has_slot = True
        slots.used += 1
        slots.queue.pop(unit.unit.id, None)
        return True
    slots.queue[unit.unit.id] = unit
    if slots.is_stuck:
        return False
    if slots.limit:
        message = f"{slots.used} of {slots.limit} units of `{slots.group}` are syncing"
        _emit_wait(context, step, "ConcurrencyLimit", message)
    else:
        _watch_approval(context, unit)
        _emit_wait(context, step, "Approval", f"`{slots.group}` is waiting for approval")
    return False


def _watch_approval(context: DecisionContext, unit: UnitRun) -> None:
    """Watch for approvals of a unit, once."""
    if not unit.awaits_approval:
        unit.awaits_approval = True
        context.issue(AwaitApproval(unit.unit.id))


def keep_slot(unit: UnitRun) -> None:
    """Count a unit that was in progress before, even above the limit.

    A unit that waits for another one of its group is not counted: that one may need the slot to
    pass.
    """
    if unit.slots is not None and not unit.has_slot and not _waits_for_group(unit):
        unit.has_slot = True
        unit.slots.used += 1


def _waits_for_group(unit: UnitRun) -> bool:
    """Return whether a step of the unit waits, directly or not, for another unit of its group."""
    visited, queue = set(unit.steps), list(unit.steps)
    while queue:
        unpassed = (
            step_before
            for step_before in queue.pop().before
            if step_before.state is not StepState.PASSED
        )
        unvisited = {step_before for step_before in unpassed if step_before not in visited}
        if any(
            step_before.unit is not unit and step_before.unit.slots is unit.slots
            for step_before in unvisited
        ):
            return True
        visited |= unvisited
        queue += unvisited
    return False


def free_slot(unit: UnitRun) -> list[UnitRun]:
    """Free the slot of a unit; return the waiting units that may start, in order.

    A failed unit keeps its slot, unless the slots are Flux workers. If failed units keep all
    slots, all waiting units are returned, so that they can be left out.
    """
    slots = unit.slots
    if slots is None:
        return []
    slots.queue.pop(unit.unit.id, None)
    if unit.has_slot:
        unit.has_slot = False
        if unit.failed and not unit.unit.policy.continue_on_failure and not slots.frees_idle_slots:
            slots.failed.append(unit.unit.id)
        else:
            slots.used -= 1
    if slots.is_stuck:
        return list(slots.queue.values())
    free_count = max(0, slots.limit - slots.used)
    return list(slots.queue.values())[:free_count]


def _emit_wait(
    context: DecisionContext, step: StepRun, reason: str, message: str, until: Ms = Ms(0)
) -> None:
    """Emit why a step does not start, once for each message."""
    if step.wait_message != message:
        step.wait_message = message
        context.emit(EventType.STEP_WAITING, step, reason=reason, message=message, until=until)
