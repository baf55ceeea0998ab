"""Units, steps and edges as a rollout takes them in, and which step holds which."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.turns.rollout import ItemRun, Rollout, SlotsRun, StepRun, UnitRun
from tidegate.model.event import StepState
from tidegate.model.objects import Spot
from tidegate.model.plan import Edge, Fragment, Plan, Step, items_of


def add(rollout: Rollout, plan: Plan | Fragment) -> list[StepRun]:
    """Take units, steps and edges into the rollout; ends of edges must be known by then."""
    for slots in plan.slots:
        rollout.slots.setdefault(slots.group, SlotsRun(slots.group, slots.limit, slots.rests))
    for unit in plan.units:
        if unit.id not in rollout.units:
            rollout.running += 1
            slots_of_unit = rollout.slots.get(unit.group)
            is_late = unit.policy.asks_late
            rollout.units[unit.id] = UnitRun(
                unit,
                unit.policy.semantics,
                slots_of_unit,
                outdated=is_late or unit.policy.asks_first,
            )
            rollout.late = rollout.late or (unit.id if is_late else None)
    runs = [_add_step(rollout, step) for step in plan.steps if step.id not in rollout.steps]
    link_all(rollout, plan.edges)
    return runs


def _add_step(rollout: Rollout, step: Step) -> StepRun:
    unit = rollout.units[step.unit]
    run = rollout.steps[step.id] = StepRun(step, unit)
    unit.steps.append(run)
    unit.unfinished += 1
    add_items(rollout, run)
    if step.rescues:
        run.unmet += 1
        unit.rescues.append(run)
    return run


def add_items(rollout: Rollout, run: StepRun) -> None:
    for item in items_of(run.step):
        spot = Spot(run.step.cluster, item.ref)
        run.items.append(ItemRun(item, spot, run))
        run.unit.hooked = run.unit.hooked or item.hook is not None
        rollout.items.setdefault(spot, []).append(run.items[-1])


def link_all(rollout: Rollout, edges: Iterable[Edge]) -> None:
    for edge in edges:
        link(rollout.steps[edge.before], rollout.steps[edge.after])


def link(before: StepRun, after: StepRun) -> None:
    before.after.append(after)
    after.before.append(before)
    after.unmet += holds(before, after)


def holds(before: StepRun, after: StepRun) -> bool:
    """Whether what comes before holds what comes after; a failure may not, by the policy."""
    through = before.state is StepState.FAILED and before.unit.unit.policy.carries_on
    return before.state is not StepState.PASSED and not through and not is_on_its_way(before, after)


def is_on_its_way(before: StepRun, after: StepRun) -> bool:
    """Whether a step is of a unit that another has brought, and that goes on by itself since."""
    return before.let_go and after.unit is not before.unit
