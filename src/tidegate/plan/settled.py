"""A plan without objects that have nothing to do in it: those there already, those as wanted."""

from __future__ import annotations

from collections.abc import Container

from tidegate.model.objects import Ref
from tidegate.model.plan import Deed, Item, Plan, Step
from tidegate.model.unit import UnitId
from tidegate.plan.chains import keep_items, narrow


def without_settled(plan: Plan, settled: Container[tuple[UnitId, Ref]]) -> Plan:
    """The plan without settled objects that were only to be created, and in units that change only
    what differs without any of them. Hooks stay. Its digest stays, too: it covers what Git says.
    """
    sparing = {unit.id for unit in plan.units if unit.policy.changed_only}

    def cut(step: Step) -> Step | None:
        def is_kept(item: Item) -> bool:
            can_go = item.deed is Deed.CREATE or (item.deed is Deed.APPLY and step.unit in sparing)
            return item.hook is not None or not can_go or (step.unit, item.ref) not in settled

        return keep_items(step, is_kept) if step.batches else step

    return narrow(plan, cut)
