"""Units, steps and edges of a rollout, and which step blocks which."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.state.rollout import GroupSlots, ItemRun, Rollout, StepRun, UnitRun
from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.plans.plan import Edge, Plan, PlanFragment, Step, step_items
from tidegate.model.rollouts.event import StepState


def add_plan(rollout: Rollout, plan: Plan | PlanFragment) -> list[StepRun]:
    """Add units, steps and edges to the rollout; return the new steps.

    Both ends of each edge must be known by then.
    """
    for slots in plan.slots:
        rollout.slots.setdefault(
            slots.group, GroupSlots(slots.group, slots.limit, slots.frees_idle_slots)
        )
    for unit in plan.units:
        if unit.id not in rollout.units:
            rollout.running_units += 1
            unit_slots = rollout.slots.get(unit.group)
            refreshes_during_rollout = unit.policy.regenerates_during_rollout
            rollout.units[unit.id] = UnitRun(
                unit,
                unit.policy.semantics,
                unit_slots,
                needs_refresh=refreshes_during_rollout or unit.policy.uses_lookup,
            )
            rollout.final_refresh_unit = rollout.final_refresh_unit or (
                unit.id if refreshes_during_rollout else None
            )
    runs = [_add_step(rollout, step) for step in plan.steps if step.id not in rollout.steps]
    add_edges(rollout, plan.edges)
    return runs


def _add_step(rollout: Rollout, step: Step) -> StepRun:
    unit = rollout.units[step.unit]
    run = rollout.steps[step.id] = StepRun(step, unit)
    unit.steps.append(run)
    unit.unfinished_steps += 1
    add_items(rollout, run)
    if step.only_on_failure:
        run.unmet_edges += 1
        unit.on_failure_steps.append(run)
    return run


def add_items(rollout: Rollout, run: StepRun) -> None:
    """Add the objects of a step to the rollout."""
    for item in step_items(run.step):
        object_ref = ClusterRef(run.step.cluster, item.ref)
        run.items.append(ItemRun(item, object_ref, run))
        run.unit.has_hooks = run.unit.has_hooks or item.hook is not None
        rollout.items.setdefault(object_ref, []).append(run.items[-1])


def add_edges(rollout: Rollout, edges: Iterable[Edge]) -> None:
    for edge in edges:
        add_edge(rollout.steps[edge.before], rollout.steps[edge.after])


def add_edge(before: StepRun, after: StepRun) -> None:
    before.after.append(after)
    after.before.append(before)
    after.unmet_edges += is_blocking(before, after)


def is_blocking(before: StepRun, after: StepRun) -> bool:
    """Return whether a step blocks the one after it.

    A failed step may not, depending on the policy.
    """
    may_continue = before.state is StepState.FAILED and before.unit.unit.policy.continue_on_failure
    return (
        before.state is not StepState.PASSED
        and not may_continue
        and not is_independent_child(before, after)
    )


def is_independent_child(before: StepRun, after: StepRun) -> bool:
    """Return whether a step belongs to a child unit that runs on its own since it was started."""
    return before.has_released_children and after.unit is not before.unit
