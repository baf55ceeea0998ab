"""Plans without objects that are already in sync."""

from __future__ import annotations

from collections.abc import Container

from tidegate.model.objects import Ref
from tidegate.model.plan import ItemAction, Plan, PlanItem, Step
from tidegate.model.unit import UnitId
from tidegate.plan.chains import filter_items, narrow_plan


def without_in_sync(plan: Plan, in_sync: Container[tuple[UnitId, Ref]]) -> Plan:
    """Return the plan without in-sync objects that are only created if missing.

    Units that apply only out-of-sync objects lose all their in-sync objects. Hooks stay. The digest
    stays, because it covers the desired state.
    """
    out_of_sync_only = {unit.id for unit in plan.units if unit.policy.changed_only}

    def narrow_step(step: Step) -> Step | None:
        def should_keep(item: PlanItem) -> bool:
            is_removable = item.deed is ItemAction.CREATE or (
                item.deed is ItemAction.APPLY and step.unit in out_of_sync_only
            )
            return item.hook is not None or not is_removable or (step.unit, item.ref) not in in_sync

        return filter_items(step, should_keep) if step.batches else step

    return narrow_plan(plan, narrow_step)
