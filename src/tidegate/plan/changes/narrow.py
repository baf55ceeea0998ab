"""Plans without hooks, or without objects that are already in sync."""

from __future__ import annotations

from collections.abc import Container

from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import ItemAction, Plan, PlanItem, Step, step_items
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.chains import filter_items, narrow_plan


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


def without_in_sync(plan: Plan, in_sync: Container[tuple[UnitId, Ref]]) -> Plan:
    """Return the plan without in-sync objects that are only created if missing.

    Units that apply only out-of-sync objects lose all their in-sync objects. Hooks stay. The digest
    stays, because it covers the desired state.
    """
    out_of_sync_only = {unit.id for unit in plan.units if unit.policy.apply_out_of_sync_only}

    def narrow_step(step: Step) -> Step | None:
        def should_keep(item: PlanItem) -> bool:
            is_removable = item.action is ItemAction.CREATE or (
                item.action is ItemAction.APPLY and step.unit in out_of_sync_only
            )
            return item.hook is not None or not is_removable or (step.unit, item.ref) not in in_sync

        return filter_items(step, should_keep) if step.batches else step

    return narrow_plan(plan, narrow_step)
