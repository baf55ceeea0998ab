"""Replanning: expansion of steps, and replacement of the plan by a newer one."""

from __future__ import annotations

import msgspec

from tidegate.engine.messages import (
    Failure,
    LeaseAcquired,
    PlanSuperseded,
    ReleaseLease,
    StepExpanded,
)
from tidegate.engine.state.links import add_edge, add_edges, add_items, add_plan
from tidegate.engine.state.rollout import DecisionContext, Rollout, StepRun, UnitRun
from tidegate.engine.state.start_conditions import keep_slot
from tidegate.engine.state.start_order import (
    exclude_unit,
    fail_step,
    finish_expanded,
    run_on_failure_steps,
    start_unit,
    try_start_all,
)
from tidegate.model.plans.plan import Plan, Step, public_digest
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.units.unit import UnitId

KEEPABLE_STATES = frozenset({StepState.PASSED, StepState.GATING})


def handle_step_expanded(context: DecisionContext, trigger: StepExpanded) -> None:
    """Add the steps that a step expanded to; the expanding step passes when all of them have."""
    rollout = context.rollout
    step = rollout.steps[trigger.step]
    context.receive_reply(step.unit)
    if step.state is not StepState.CHECKING:
        return
    if isinstance(trigger.outcome, Failure):
        fail_step(context, step, trigger.outcome)
        return
    context.set_step_state(step, StepState.GATING, reason="Expanded")
    runs = add_plan(rollout, trigger.outcome)
    context.touched_units |= {unit.id: rollout.units[unit.id] for unit in trigger.outcome.units}
    step.unfinished_children, step.failed_child = len(runs), ""
    for run in runs:
        run.expanded_from = step
    if not runs:
        finish_expanded(context, step)
    try_start_all(context, runs, trigger.due_units)


def handle_lease_acquired(context: DecisionContext, trigger: LeaseAcquired) -> None:
    """Start a unit whose lease was acquired, with its new plan if there is one."""
    unit = context.rollout.units.get(trigger.unit)
    if unit is None or not unit.needs_lease or unit.ended:
        return
    unit.needs_lease = unit.lease_requested = False
    context.touched_units[trigger.unit] = unit
    if trigger.failure is not None:
        exclude_unit(context, unit, trigger.failure)
    elif trigger.plan is not None:
        _replace_unit_steps(context.rollout, unit, trigger.plan)
    start_unit(context, unit)


def _replace_unit_steps(rollout: Rollout, unit: UnitRun, part: Plan) -> None:
    """Replace the steps of a unit that has not started.

    A removed step has nothing to do any more; others still wait for it. A new step is placed by
    the edges of the new plan. A new first step waits for what the old first steps waited for,
    and what waited for the old last steps waits for a new last step.
    """
    known, desired = list(unit.steps), {step.id: step for step in part.steps}
    firsts = [run for run in known if not _is_within(run.before, unit)]
    lasts = [run for run in known if not _is_within(run.after, unit)]
    before = dict.fromkeys(predecessor for run in firsts for predecessor in run.before)
    after = dict.fromkeys(successor for run in lasts for successor in run.after)
    unit.has_hooks = False
    for run in known:
        _replace_step(rollout, run, desired.get(run.step.id))
    fresh = add_plan(rollout, msgspec.structs.replace(part, edges=()))
    parent = known[0].expanded_from if known else None
    for run in fresh:
        run.expanded_from = parent
    if parent is not None:
        parent.unfinished_children += len(fresh)
    _add_new_edges(rollout, part)
    for run in (run for run in fresh if not run.step.only_on_failure):
        for predecessor in before if not _is_within(run.before, unit) else ():
            add_edge(predecessor, run)
        for successor in after if not _is_within(run.after, unit) else ():
            add_edge(run, successor)


def _replace_step(rollout: Rollout, run: StepRun, step: Step | None) -> None:
    for item in run.items:
        rollout.items[item.object_ref].remove(item)
    run.items, run.is_noop = [], step is None
    if step is not None:
        run.step = step
        add_items(rollout, run)


def _is_within(steps: list[StepRun], unit: UnitRun) -> bool:
    return any(step.unit is unit for step in steps)


def _add_new_edges(rollout: Rollout, plan: Plan) -> None:
    """Add the edges of a plan that are new; steps that have started get no further edges."""
    for edge in plan.edges:
        before, after = rollout.steps.get(edge.before), rollout.steps.get(edge.after)
        if before is None or after is None or after in before.after:
            continue
        if after.state is StepState.WAITING:
            add_edge(before, after)


def handle_plan_superseded(context: DecisionContext, trigger: PlanSuperseded) -> None:
    """Prepare the switch to a newer plan at the next safe point: when no reply is pending."""
    context.rollout.is_being_superseded = True
    context.rollout.successor = trigger if trigger.plan is not None else None


def switch_plan(context: DecisionContext) -> None:
    """Switch to the newer plan at a safe point. Steps that are equal in both plans are kept."""
    rollout = context.rollout
    newer = rollout.successor
    plan = newer.plan if newer is not None else None
    if newer is None or plan is None or rollout.pending_replies or rollout.ended:
        return
    rollout.is_being_superseded, rollout.successor = False, None
    leased_elsewhere = {name: unit for name, unit in rollout.units.items() if unit.needs_lease}
    for name in leased_elsewhere.keys() - set(newer.due_units):
        context.issue(ReleaseLease(name))
    attempts = _attempts_to_keep(rollout)
    old_steps = _clear(rollout)
    kept_steps = _find_kept_steps(old_steps, plan)
    for step in old_steps.values():
        if step.step.id not in kept_steps and not step.is_final:
            context.set_step_state(step, StepState.SUPERSEDED)
    rollout.digest = plan.digest
    rollout.failed, rollout.abandon_reason = False, ""
    rollout.final_refresh_unit, rollout.is_final_refresh_pending = None, False
    context.emit(EventType.ROLLOUT_SUPERSEDED, reason=public_digest(plan))
    _start_plan(context, newer, plan, {name: old_steps[name] for name in kept_steps})
    for name in attempts.keys() & rollout.units.keys():
        rollout.units[name].attempts = attempts[name]


def _attempts_to_keep(rollout: Rollout) -> dict[UnitId, int]:
    """Return the attempts of units whose retry count continues with a newer desired state."""
    units = rollout.units.items()
    return {name: unit.attempts for name, unit in units if unit.semantics.retry.keeps_count}


def _start_plan(
    context: DecisionContext, newer: PlanSuperseded, plan: Plan, kept_steps: dict[str, StepRun]
) -> None:
    rollout = context.rollout
    runs = add_plan(rollout, msgspec.structs.replace(plan, edges=()))
    for run in runs:
        if run.step.id in kept_steps:
            _keep_step(context, run, kept_steps[run.step.id])
    add_edges(rollout, plan.edges)
    for unit in dict.fromkeys(run.unit for run in runs if run.step.id in kept_steps):
        keep_slot(unit)
    context.touched_units = {**rollout.units}
    for name, failure in newer.excluded.items():
        if name in rollout.units:
            exclude_unit(context, rollout.units[name], failure)
    try_start_all(context, runs, newer.due_units)
    for run in runs:
        if run.is_final:
            run_on_failure_steps(context, run)


def _keep_step(context: DecisionContext, new_step: StepRun, old_step: StepRun) -> None:
    """Continue a step where it was; its objects are the same, in the same order."""
    new_step.state, new_step.gating_count, new_step.next_batch = (
        old_step.state,
        old_step.gating_count,
        old_step.next_batch,
    )
    new_step.failure, new_step.has_released_children = (
        old_step.failure,
        old_step.has_released_children,
    )
    new_step.applied_at, new_step.changed_at, new_step.deadline = (
        old_step.applied_at,
        old_step.changed_at,
        old_step.deadline,
    )
    for new_item, old_item in zip(new_step.items, old_step.items, strict=True):
        new_item.copy_state(old_item)
    if not new_step.only_awaits:
        # Its first step has already started.
        new_step.unit.needs_refresh = new_step.unit.unit.policy.regenerates_during_rollout
    if new_step.is_final:
        new_step.unit.unfinished_steps -= 1
        new_step.unit.failed |= new_step.state is StepState.FAILED
    else:
        context.set_timer(context.now, new_step)


def _clear(rollout: Rollout) -> dict[str, StepRun]:
    old = rollout.steps
    rollout.units, rollout.steps, rollout.items, rollout.slots = {}, {}, {}, {}
    rollout.running_units = 0
    return old


def _find_kept_steps(old_steps: dict[str, StepRun], plan: Plan) -> set[str]:
    """Return the steps with equal id, digest and predecessors, all of which are also kept."""
    before: dict[str, set[str]] = {step.id: set() for step in plan.steps}
    for edge in plan.edges:
        before[edge.after].add(edge.before)
    kept_steps: set[str] = set()
    for step in plan.steps:
        run = old_steps.get(step.id)
        if run is None or not _can_be_kept(run, step):
            continue
        predecessors = before[step.id]
        if (
            predecessors == {step_before.step.id for step_before in run.before}
            and predecessors <= kept_steps
        ):
            kept_steps.add(step.id)
    return kept_steps


def _can_be_kept(run: StepRun, step: Step) -> bool:
    """Return whether a step can be kept in the newer plan.

    The steps that a running step expanded to are not in the newer plan, so it must expand
    again. On-failure steps are not kept, because they belong to the previous failure.
    """
    has_passed = run.state is StepState.PASSED
    is_keepable = has_passed or (run.state in KEEPABLE_STATES and not step.expansion)
    return run.step.digest == step.digest and is_keepable and not step.only_on_failure
