"""Start order of steps: edges, delays, retries, and what follows from a failure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.engine.messages import (
    CompareStep,
    DeleteHooks,
    Expand,
    Failure,
    PreflightFailed,
    RolloutStarted,
)
from tidegate.engine.state.links import add_plan, is_blocking, is_independent_child
from tidegate.engine.state.rollout import DecisionContext, ItemState, StepRun, UnitRun
from tidegate.engine.state.start_conditions import free_slot, keep_slot, may_start, request_leases
from tidegate.model.display import count_noun, join_quoted
from tidegate.model.plans.plan import public_digest
from tidegate.model.rollouts.event import (
    FAILURE_IGNORED,
    FINAL_STATES,
    NOT_NEEDED,
    EventType,
    StepState,
)
from tidegate.model.times import Ms
from tidegate.model.units.release_history import RevisionOutcome
from tidegate.model.units.semantics import ChildGates
from tidegate.model.units.unit import UnitId

SKIPPED_TEST_MESSAGE = "skipped: an earlier test failed, and test failures are ignored"


def handle_rollout_started(context: DecisionContext, trigger: RolloutStarted) -> None:
    """Add the plan to the rollout and start its first steps."""
    rollout, plan = context.rollout, trigger.plan
    rollout.started_at = context.now
    rollout.digest = plan.digest
    runs = add_plan(rollout, plan)
    context.emit(EventType.ROLLOUT_STARTED, reason=public_digest(plan))
    context.touched_units |= rollout.units
    for name, failure in trigger.excluded.items():
        exclude_unit(context, rollout.units[name], failure)
    for name in trigger.units_in_progress:
        keep_slot(rollout.units[name])
    try_start_all(context, runs, trigger.due_units)


def try_start(context: DecisionContext, step: StepRun) -> None:
    """Start a step that no edge blocks any more, now or after its delay.

    With polling semantics (Flux), a unit checks its dependencies at intervals that begin when
    the unit itself is applied, and its children as often as its other objects.
    """
    if step.state is not StepState.WAITING:
        return
    if step.unmet_edges:
        _set_children_deadline(context, step)
        return
    if step.semantics.dependency_interval or step.semantics.gate_check_interval:
        _delay_to_interval(context, step)
    start_step(context, step)


def _set_children_deadline(context: DecisionContext, step: StepRun) -> None:
    """Give child units that a gate waits for as much time as the objects of their parent.

    An implicit parent, which is not defined by a resource, has no deadline.
    """
    has_deadline = bool(step.semantics.deadline and step.unit.unit.id.kind)
    if step.deadline is not None or not step.step.is_placeholder or not has_deadline:
        return
    unit_steps = [step_before for step_before in step.before if step_before.unit is step.unit]
    gates_children = step.semantics.child_gates is ChildGates.GATES and unit_steps
    if gates_children and all(step_before.state is StepState.PASSED for step_before in unit_steps):
        since = max(step_before.applied_at for step_before in unit_steps)
        step.deadline = Ms(since + step.semantics.deadline)
        context.set_timer(step.deadline, step)


def check_children_deadline(context: DecisionContext, step: StepRun) -> None:
    """Fail a step whose child units have exceeded its deadline; otherwise set the timer again."""
    if step.deadline is None:
        return
    if context.now < step.deadline:
        context.set_timer(step.deadline, step)
        return
    late_units = dict.fromkeys(
        step_before.unit.unit.id
        for step_before in step.before
        if step_before.state is not StepState.PASSED
    )
    fail_step(context, step, Failure("Deadline", f"{join_quoted(late_units, 1)} timed out"))


def _delay_to_interval(context: DecisionContext, step: StepRun) -> None:
    unit, other_steps = (
        step.unit.unit,
        [step_before for step_before in step.before if step_before.unit is not step.unit],
    )
    parent_steps = [
        step_before for step_before in other_steps if step_before.unit.unit.id == unit.parent
    ]
    if any(step_before.unit.unit.parent == unit.id for step_before in other_steps):
        interval = step.semantics.gate_check_interval if unit.id.kind else Ms(0)
        since = (
            step_before.applied_at for step_before in step.before if step_before.unit is step.unit
        )
    else:
        interval = (
            step.semantics.dependency_interval if len(other_steps) > len(parent_steps) else Ms(0)
        )
        since = (step_before.applied_at for step_before in parent_steps)
    if interval:
        started_at = max(context.rollout.started_at, *since, Ms(0))
        polls = -(-(context.now - started_at) // interval)
        step.not_before = max(step.not_before, Ms(started_at + polls * interval))


def try_start_all(
    context: DecisionContext, steps: Iterable[StepRun], due_units: Iterable[UnitId]
) -> None:
    """Start the steps that can start; steps of `due_units` wait for the lease of their unit."""
    due_units = tuple(due_units)
    for name in due_units:
        unit = context.rollout.units[name]
        unit.needs_lease = unit.has_work = True
    for step in steps:
        try_start(context, step)
    request_leases(context, due_units)


def start_step(context: DecisionContext, step: StepRun) -> None:
    """Start a step if its conditions are met; otherwise leave it waiting."""
    if context.is_draining(step):
        return
    if context.now < step.not_before:
        context.set_timer(step.not_before, step)
        return
    if not may_start(context, step):
        _skip_without_slot(context, step.unit)
        return
    if step.is_noop:
        reason = FAILURE_IGNORED if step.step.is_test else ""
        context.set_step_state(
            step, StepState.PASSED, reason=reason, message=SKIPPED_TEST_MESSAGE if reason else ""
        )
        start_dependents(context, step)
        return
    context.set_step_state(step, StepState.CHECKING)
    context.expect_reply(step.unit)
    name, outcome = step.step.id, step.unit.failure if step.step.only_on_failure else None
    if step.step.is_test:
        outcome = RevisionOutcome(passed=True, hooks=step.unit.hook_runs(context.now))
    slots = step.unit.slots
    takes_slot = slots is not None and not slots.frees_idle_slots
    context.issue(Expand(name) if step.step.expansion else CompareStep(name, outcome, takes_slot))


def _skip_without_slot(context: DecisionContext, unit: UnitRun) -> None:
    """Skip a unit that waits for a slot which a failed unit keeps."""
    slots = unit.slots
    if slots is None or unit.has_slot or unit.needs_lease or not slots.is_stuck:
        return
    slots.queue.pop(unit.unit.id, None)
    unit.on_failure_steps = []
    failed_names = ", ".join(f"`{failed_unit}`" for failed_unit in slots.failed)
    allowed = count_noun(slots.limit, "unit")
    message = f"{failed_names} failed, and `{slots.group}` allows {allowed} at once"
    for step in unit.steps:
        if step.state is StepState.WAITING:
            context.set_step_state(
                step, StepState.SKIPPED, reason="ConcurrencyLimit", message=message
            )
            settle_child(context, step)
            skip_dependents(context, step)


def start_unit(context: DecisionContext, unit: UnitRun) -> None:
    """Start the steps of a unit that no edge blocks."""
    for step in unit.steps:
        if not step.unmet_edges and step.state is StepState.WAITING:
            start_step(context, step)


def free_idle_slot(context: DecisionContext, unit: UnitRun) -> None:
    """Free the slot of an idle unit for other units, if its group allows that."""
    if unit.slots is not None and unit.slots.frees_idle_slots and unit.has_slot:
        for next_unit in free_slot(unit):
            start_unit(context, next_unit)


def handle_preflight_failed(context: DecisionContext, trigger: PreflightFailed) -> None:
    """Fail an unstarted step whose objects would be rejected, while earlier gates still wait."""
    step = context.rollout.steps.get(trigger.step)
    if step is None or step.state is not StepState.WAITING or step.step.digest != trigger.digest:
        return
    if not step.step.only_on_failure and not step.unit.unit.policy.continue_on_failure:
        fail_step(context, step, msgspec.structs.replace(trigger.failure, final=True))


def pass_step(context: DecisionContext, step: StepRun) -> None:
    """Set a step to passed and start what waits for it."""
    context.set_step_state(step, StepState.PASSED)
    step.unit.needs_refresh |= step.unit.unit.policy.regenerates_during_rollout
    start_dependents(context, step)


def start_dependents(context: DecisionContext, step: StepRun) -> None:
    """Remove the edges from a step and start the steps that waited for it."""
    settle_child(context, step)
    for dependent in (
        step_after for step_after in step.after if step_after.state is StepState.WAITING
    ):
        if is_independent_child(step, dependent):
            continue
        dependent.unmet_edges -= 1
        if dependent.unit is step.unit and dependent.step.wave_key != step.step.wave_key:
            dependent.not_before = max(dependent.not_before, Ms(step.applied_at + step.pause))
        try_start(context, dependent)
    step.has_released_children |= (
        step.step.is_placeholder and step.semantics.child_gates is ChildGates.GATES
    )


def fail_step(context: DecisionContext, step: StepRun, failure: Failure) -> None:
    """Retry a step if that is useful; otherwise fail it and skip what waits for it."""
    retry, unit = step.semantics.retry, step.unit
    if unit.stop_reason:
        return  # the rest is abandoned when its running steps have ended
    if step.step.is_test and unit.unit.policy.ignore_test_failures:
        _ignore_failed_test(context, step, failure.message)
        return
    attempt = (unit.attempts if retry.restarts_unit else step.attempts) + 1
    final = failure.final or step.step.only_on_failure
    if unit.delayed_retry is not None and step.step.only_on_failure:
        _fail_remediation(context, step, failure)
        return
    if not step.step.only_on_failure:
        hooks = unit.hook_runs(context.now, failing_step=step)
        unit.failure = RevisionOutcome(passed=False, message=failure.message, hooks=hooks)
    if not final and attempt <= retry.limit and not context.is_draining(step):
        unit.attempts, step.attempts = attempt, attempt
        _retry(context, step, failure)
        return
    context.rollout.failed = unit.failed = True
    context.set_step_state(
        step,
        StepState.FAILED,
        reason=failure.reason,
        message=failure.message,
        failed_object=failure.ref,
    )
    if unit.is_remediating:
        _abandon_unit(context, step)
        return
    if unit.unit.policy.continue_on_failure:
        start_dependents(context, step)
        return
    settle_child(context, step)
    skip_dependents(context, step)


def _ignore_failed_test(context: DecisionContext, step: StepRun, message: str) -> None:
    """Pass a step whose failed test is ignored; the remaining tests are not run."""
    for run in step.items:
        run.state = ItemState.PASSED if run.state is ItemState.PASSED else ItemState.FAILED
    for other_step in step.unit.steps:
        other_step.is_noop |= other_step.step.is_test and other_step.state is StepState.WAITING
    ignored_message = f"failed, but test failures are ignored: {message}"
    context.set_step_state(step, StepState.PASSED, reason=FAILURE_IGNORED, message=ignored_message)
    start_dependents(context, step)


def _fail_remediation(context: DecisionContext, step: StepRun, failure: Failure) -> None:
    """Fail an on-failure step of a unit that is retried in any case."""
    reason, message, ref = failure.reason, failure.message, failure.ref
    context.set_step_state(
        step, StepState.FAILED, reason=reason, message=message, failed_object=ref
    )
    settle_child(context, step)


def _retry(context: DecisionContext, step: StepRun, failure: Failure) -> None:
    """Reset a failed step, or its whole unit, and start it again after a delay."""
    retry, unit = step.semantics.retry, step.unit
    unit.needs_refresh |= retry.uses_current_revision
    unit.on_failure_hooks = ()
    remediates = retry.remediates_before_retry and unit.on_failure_steps and _has_remediation(step)
    retried_steps = _retried_steps(step)
    for retried in retried_steps:
        for after in retried.after if retried.state is StepState.PASSED else ():
            if not is_independent_child(retried, after):
                after.unmet_edges += 1  # also in units that have not started
        reset_step(retried)
    free_idle_slot(context, unit)
    for retried in retried_steps:
        retried.unmet_edges = sum(is_blocking(before, retried) for before in retried.before)
    if remediates and retry.backs_off_after_remediation:
        unit.delayed_retry = (step, failure)
    else:
        _schedule_retry(context, step, failure, retried_steps)
    if remediates:
        unit.is_remediating = True
        _start_on_failure_steps(context, unit.on_failure_steps)
    for retried in retried_steps:
        try_start(context, retried)


def _retried_steps(step: StepRun) -> list[StepRun]:
    """Return the steps that start again after the failure of a step."""
    if not step.semantics.retry.restarts_unit:
        return [step]
    passed = (other for other in step.unit.steps if other.state is StepState.PASSED)
    return [step, *passed]


def _schedule_retry(
    context: DecisionContext, step: StepRun, failure: Failure, retried_steps: list[StepRun]
) -> None:
    """Delay the start of reset steps by the backoff of the attempt."""
    retry_at = Ms(context.now + step.semantics.retry.delay(step.attempts))
    context.emit(
        EventType.RETRY_SCHEDULED,
        _reported_step(step),
        reason=failure.reason,
        message=failure.message,
        until=retry_at,
        failed_object=failure.ref,
    )
    for retried in retried_steps:
        retried.not_before = retry_at
    if step.unit.has_hooks and step.semantics.retry.backs_off_after_remediation:
        context.expect_reply(step.unit)
        context.issue(DeleteHooks(step.unit.unit.id, failed=True))


def _has_remediation(failed_step: StepRun) -> bool:
    """Return whether on-failure steps run for the failure of a step."""
    return not failed_step.step.is_test or failed_step.unit.unit.policy.remediate_test_failures


def _start_on_failure_steps(context: DecisionContext, steps: list[StepRun]) -> None:
    """Start the on-failure steps of a unit; only the edges between them block them."""
    for step in steps:
        step.unmet_edges -= 1
    for step in list(steps):
        try_start(context, step)


def _finish_remediation(context: DecisionContext, unit: UnitRun) -> None:
    """Retry a unit whose on-failure steps have all ended, and reset those steps."""
    needed_states = FINAL_STATES if unit.delayed_retry else {StepState.PASSED}
    if not all(step.state in needed_states for step in unit.on_failure_steps):
        return
    unit.is_remediating, unit.on_failure_hooks = False, unit.hook_runs(context.now, on_failure=True)
    for step in unit.on_failure_steps:
        reset_step(step)
    for step in unit.on_failure_steps:
        step.unmet_edges = 1 + sum(is_blocking(before, step) for before in step.before)
    if unit.delayed_retry is not None:
        (failed_step, failure), unit.delayed_retry = unit.delayed_retry, None
        ordinary_steps = [step for step in unit.steps if not step.step.only_on_failure]
        _schedule_retry(context, failed_step, failure, ordinary_steps)
    start_unit(context, unit)


def _abandon_unit(context: DecisionContext, step: StepRun) -> None:
    """Skip the remaining steps of a unit whose remediation failed."""
    unit = step.unit
    unit.is_remediating, unit.on_failure_steps = False, []
    message = f"the remediation `{step.step.id}` failed"
    for waiting_step in unit.steps:
        if waiting_step.state is StepState.WAITING:
            context.set_step_state(
                waiting_step, StepState.SKIPPED, reason="DependencyFailed", message=message
            )
            settle_child(context, waiting_step)
            skip_dependents(context, waiting_step)


def _reported_step(step: StepRun) -> StepRun:
    """Return the step to report; for one without objects, the last of its unit with objects."""
    if not step.step.is_placeholder:
        return step
    return next(
        (step_run for step_run in reversed(step.unit.steps) if not step_run.step.is_placeholder),
        step,
    )


def reset_step(step: StepRun) -> None:
    """Reset a step to waiting; objects in the cluster stay and are compared again."""
    if step.is_final:
        step.unit.unfinished_steps += 1
    step.state = StepState.WAITING
    step.next_batch = 0
    step.failure = None
    step.deadline = step.next_check_at = None
    step.is_reading_status = False
    step.pending_writes = sum(run.awaits_reply for run in step.items)
    for run in step.items:
        run.reset()


def skip_dependents(context: DecisionContext, step: StepRun) -> None:
    """Skip the steps that wait for a step that will not pass."""
    message = f"depends on `{step.step.id}`, which failed"
    pending = list(reversed(step.after))
    while pending:
        dependent = pending.pop()
        if dependent.state is StepState.WAITING:
            context.set_step_state(
                dependent, StepState.SKIPPED, reason="DependencyFailed", message=message
            )
            settle_child(context, dependent)
            pending += reversed(dependent.after)


def exclude_unit(context: DecisionContext, unit: UnitRun, failure: Failure) -> None:
    """Fail a unit that cannot be started.

    Skip its on-failure steps and everything that waits for it.
    """
    unit.on_failure_steps = []
    unit.failed = context.rollout.failed = True
    unit.exclusion_reason = failure.message
    for step in unit.steps:
        if step.state is not StepState.WAITING:
            continue
        state = StepState.SKIPPED if step.step.only_on_failure else StepState.FAILED
        context.set_step_state(
            step,
            state,
            reason=failure.reason,
            message=failure.message,
            failed_object=failure.ref,
        )
        skip_dependents(context, step)


def run_on_failure_steps(context: DecisionContext, step: StepRun) -> None:
    """Start or skip the on-failure steps of a unit when all of its other steps are final."""
    unit = step.unit
    if unit.is_remediating and step.step.only_on_failure:
        _finish_remediation(context, unit)
    if not unit.on_failure_steps or step.step.only_on_failure:
        return
    ordinary = [step_run for step_run in unit.steps if not step_run.step.only_on_failure]
    if not all(step_run.is_final for step_run in ordinary):
        return
    waiting, unit.on_failure_steps = unit.on_failure_steps, []
    failed_steps = [step_run for step_run in ordinary if step_run.state is StepState.FAILED]
    has_failed = bool(failed_steps)
    if step.semantics.retry.remediates_last and any(map(_has_remediation, failed_steps)):
        _start_on_failure_steps(context, waiting)
        return
    message = "the last failure is not remediated" if has_failed else "nothing failed"
    for on_failure_step in waiting:
        if on_failure_step.state is StepState.WAITING:
            context.set_step_state(
                on_failure_step, StepState.SKIPPED, reason=NOT_NEEDED, message=message
            )
            skip_dependents(context, on_failure_step)


def settle_child(context: DecisionContext, step: StepRun) -> None:
    """Count a final step at the step that expanded to it, and run on-failure steps."""
    run_on_failure_steps(context, step)
    parent = step.expanded_from
    if parent is None:
        return
    parent.unfinished_children -= 1
    if step.state is not StepState.PASSED:
        parent.failed_child = step.step.id
    if not parent.unfinished_children:
        finish_expanded(context, parent)


def finish_expanded(context: DecisionContext, parent: StepRun) -> None:
    """Pass or fail an expanding step when all of its expanded steps are final."""
    if parent.failed_child:
        message = f"its step `{parent.failed_child}` did not pass"
        fail_step(context, parent, Failure("ChildStepFailed", message, final=True))
    else:
        pass_step(context, parent)
