"""Plans without hooks, or without objects that are already in sync."""

from __future__ import annotations

from tidegate.model.plan import Plan, Step, step_items
from tidegate.model.unit import UnitId
from tidegate.plan.chains import filter_items, narrow_plan


def without_hooks(plan: Plan, units: set[UnitId], *, except_tests: bool = False) -> Plan:
    """Return the plan without the hooks of these units, and without steps that had nothing else.

    The digest stays, because it covers the desired state.
    """

    def narrow_step(step: Step) -> Step | None:
        is_kept_test = except_tests and step.is_test
        if step.unit not in units or is_kept_test or not has_hooks(step):
            return step
        return filter_items(step, lambda item: item.hook is None)

    return narrow_plan(plan, narrow_step)


def has_hooks(step: Step) -> bool:
    return any(item.hook is not None for item in step_items(step))
