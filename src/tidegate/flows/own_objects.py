"""Where the own objects of units are: what says in a cluster that a unit is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidegate.flows.planning import PlanResult
from tidegate.flows.session import Session
from tidegate.model.objects import ClusterRef, Kind, Ref
from tidegate.model.plan import ItemAction, step_items
from tidegate.model.unit import UnitId


class UnitResource(NamedTuple):
    """The reference of a unit resource."""

    cluster_ref: ClusterRef
    body: bytes = b""
    """The body that the plan writes; empty if the plan does not write it."""


async def find_unit_resources(
    plan_result: PlanResult, session: Session, groups: Mapping[str, str]
) -> dict[UnitId, UnitResource]:
    """Return the unit resources of units whose kinds are in `groups`.

    In the version that the plan writes, or else one that the cluster serves. A kind that is
    neither served nor written has none.
    """
    resources: dict[UnitId, UnitResource] = {}
    units = [unit.id for unit in plan_result.plan.units if unit.id.kind in groups]
    unit_ids = frozenset(units)
    for step in plan_result.plan.steps if units else ():
        for item in (
            plan_item for plan_item in step_items(step) if plan_item.deed is not ItemAction.SKIP
        ):
            kind, ref = item.ref.kind, item.ref
            unit_id = UnitId(kind.name, step.cluster, ref.namespace, ref.name)
            if unit_id in unit_ids and groups[kind.name] == kind.group:
                resources.setdefault(
                    unit_id, UnitResource(ClusterRef(step.cluster, ref), item.body)
                )
    for unit_id in (missing for missing in units if missing not in resources):
        if unit_id.cluster not in session.targets.contexts:
            continue
        for kind in await _served_kinds(unit_id, groups[unit_id.kind], session):
            resources[unit_id] = UnitResource(
                ClusterRef(unit_id.cluster, Ref(kind, unit_id.namespace, unit_id.name))
            )
    return {unit_id: resources[unit_id] for unit_id in units if unit_id in resources}


async def _served_kinds(unit: UnitId, group: str, session: Session) -> list[Kind]:
    kinds = (served_kind.kind for served_kind in await session.kinds(unit.cluster))
    return [kind for kind in kinds if (kind.group, kind.name) == (group, unit.kind)][:1]
