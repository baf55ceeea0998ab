"""A plan without its hooks: for units in which nothing has changed."""

from __future__ import annotations

from tidegate.model.plan import Plan, Step, items_of
from tidegate.model.unit import UnitId
from tidegate.plan.chains import keep_items, narrow


def without_hooks(plan: Plan, units: set[UnitId], *, but_tests: bool = False) -> Plan:
    """The plan without the hooks of these units; steps that had nothing else are gone.

    Its digest stays: it covers what Git says.
    """

    def cut(step: Step) -> Step | None:
        is_spared = but_tests and step.tests
        if step.unit not in units or is_spared or not has_hooks(step):
            return step
        return keep_items(step, lambda item: item.hook is None)

    return narrow(plan, cut)


def has_hooks(step: Step) -> bool:
    return any(item.hook is not None for item in items_of(step))
