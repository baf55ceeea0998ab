"""The pure and incremental decision function of the engine.

    state + input + time → commands, events, time of the next call

`decide` changes only the rollout state. An input touches what it concerns and what depends on
it, so the cost of a rollout is proportional to its steps and edges.
"""

from __future__ import annotations

from tidegate.engine import messages
from tidegate.engine.state.apply import (
    handle_object_deleted,
    handle_replaced_object,
    handle_step_compared,
    handle_verify_finished,
    handle_write_finished,
    start_batches,
)
from tidegate.engine.state.completion import (
    finish_idle,
    handle_hooks_deleted,
    handle_journal_saved,
    handle_lease_requested,
    handle_stop_requested,
    handle_unblocked,
)
from tidegate.engine.state.replan import (
    handle_lease_acquired,
    handle_plan_superseded,
    handle_step_expanded,
    switch_plan,
)
from tidegate.engine.state.rollout import DecisionContext, Rollout, StepRun
from tidegate.engine.state.start_order import (
    check_children_deadline,
    handle_preflight_failed,
    handle_rollout_started,
    start_step,
)
from tidegate.engine.state.step_gates import (
    check_deletions,
    check_gate,
    extend_deadlines,
    handle_health_changed,
    handle_probe_finished,
    handle_status_read,
)
from tidegate.model.rollouts.event import StepState
from tidegate.model.times import Ms


def decide(rollout: Rollout, trigger: messages.Input, now: Ms) -> messages.Decision:
    """Apply one input to the rollout state and return the decision."""
    context = DecisionContext(rollout, now)
    if isinstance(trigger, messages.ObjectInput):
        _handle_object_input(context, trigger)
    elif isinstance(trigger, messages.JournalSaved):
        handle_journal_saved(context, trigger)
    elif isinstance(trigger, messages.PreflightFailed):
        handle_preflight_failed(context, trigger)
    elif isinstance(trigger, messages.HooksDeleted):
        handle_hooks_deleted(context, trigger)
    elif isinstance(trigger, messages.ClusterAnswered):
        extend_deadlines(context, trigger)
    elif isinstance(trigger, messages.LeaseAcquired):
        handle_lease_acquired(context, trigger)
    elif isinstance(trigger, messages.LeaseRequested):
        handle_lease_requested(context, trigger)
    else:
        _handle_control_input(context, trigger)
    switch_plan(context)
    finish_idle(context)
    return context.to_decision()


def _handle_object_input(context: DecisionContext, trigger: messages.ObjectInput) -> None:
    match trigger:
        case messages.StepCompared():
            handle_step_compared(context, trigger)
        case messages.WriteFinished():
            handle_write_finished(context, trigger)
        case messages.HealthChanged():
            handle_replaced_object(context, trigger)
            handle_health_changed(context, trigger)
        case messages.ObjectDeleted():
            handle_object_deleted(context, trigger)
        case messages.StatusRead():
            handle_status_read(context, trigger)
        case messages.ProbeFinished():
            handle_probe_finished(context, trigger)
        case messages.VerifyFinished():
            handle_verify_finished(context, trigger)


def _handle_control_input(context: DecisionContext, trigger: messages.ControlInput) -> None:
    match trigger:
        case messages.RolloutStarted():
            handle_rollout_started(context, trigger)
        case messages.StepExpanded():
            handle_step_expanded(context, trigger)
        case messages.PlanSuperseded():
            handle_plan_superseded(context, trigger)
        case messages.StopRequested():
            handle_stop_requested(context, trigger)
        case messages.ApprovalGranted() | messages.RefreshFinished():
            handle_unblocked(context, trigger)
        case messages.TimerElapsed():
            for name in context.rollout.pop_due_timers(context.now):
                _handle_timer(context, context.rollout.steps.get(name))


def _handle_timer(context: DecisionContext, step: StepRun | None) -> None:
    """Handle a timer of a step: its delay is over, or its gate must be checked."""
    if step is None:
        return
    if step.state is StepState.WAITING:
        (check_children_deadline if step.unmet_edges else start_step)(context, step)
    elif step.state is StepState.APPLYING:
        check_deletions(context, step)
        if step.state is StepState.APPLYING:
            start_batches(context, step)
    elif step.state is StepState.GATING and not step.step.expansion:
        check_gate(context, step)
