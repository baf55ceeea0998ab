"""Units that somebody has suspended in their cluster, on their own objects or by a record of ours.

A unit whose controller is held by us is not suspended: we roll it out in the controller's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tidegate.dialect.masters import CONTROLLERS, is_paused_by_us
from tidegate.dialect.requests import is_suspended
from tidegate.engine.suspensions import SUSPENSIONS
from tidegate.errors import Location
from tidegate.flows.discover import UnitTree
from tidegate.flows.looking import object_body
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import JsonObject, LiveObject
from tidegate.model.reading import get_text
from tidegate.model.unit import UnitId
from tidegate.world.ask import send_requests
from tidegate.world.calls import List, Selection
from tidegate.world.facts import Forbidden, ListPage, NotFound, NotServed, Outcome, is_error
from tidegate.world.refusals import error_from_outcome


async def apply_suspensions(
    unit_trees: Sequence[UnitTree], session: Session
) -> tuple[tuple[UnitTree, ...], tuple[Finding, ...]]:
    """Return the trees with units that are suspended in the cluster marked as such, and findings.

    Units are suspended on their unit resources or by a Tidegate record. A finding names what
    cannot be listed. A unit whose controller is paused by Tidegate is not suspended.
    """
    ids = [
        member.unit.id
        for unit_tree in unit_trees
        for member in unit_tree.members
        if member.unit.id.kind
    ]
    suspended, unlisted = await _list_suspended(ids, session)
    result = (
        tuple(_mark_suspended(unit_tree, suspended) for unit_tree in unit_trees)
        if suspended
        else tuple(unit_trees)
    )
    return result, tuple(map(_unlisted_finding, unlisted))


def _unlisted_finding(resource: str) -> Finding:
    return Finding(
        code="units.unseen",
        severity=Severity.NOTE,
        message=f"whether units are suspended in the cluster cannot be seen: {resource}",
        reason="what may not be listed there is taken for not suspended",
    )


def _mark_suspended(unit_tree: UnitTree, suspended: frozenset[UnitId]) -> UnitTree:
    members = tuple(
        replace(member, unit=msgspec.structs.replace(member.unit, is_suspended=True))
        if member.unit.id in suspended
        else member
        for member in unit_tree.members
    )
    return replace(unit_tree, members=members)


async def find_suspended(ids: Iterable[UnitId], session: Session) -> frozenset[UnitId]:
    """Return those of the units that are suspended in their cluster."""
    suspended, _ = await _list_suspended([*ids], session)
    return suspended


async def _list_suspended(
    ids: Sequence[UnitId], session: Session
) -> tuple[frozenset[UnitId], tuple[str, ...]]:
    """Return the suspended units, and what may not be listed.

    Unit resources are read with one list for each kind and namespace.
    """
    suspended: set[UnitId] = set()
    unlisted: list[str] = []
    for cluster in dict.fromkeys(unit_id.cluster for unit_id in ids):
        if cluster not in session.targets.contexts:
            continue
        cluster_ids = [unit_id for unit_id in ids if unit_id.cluster == cluster]
        selections = (SUSPENSIONS, *await _unit_resource_selections(cluster_ids, cluster, session))
        pages = await send_requests(session.world, *map(List, selections), cluster=cluster)
        unlisted += [
            f"{selection.kind.name} in `{selection.namespace}`"
            for selection, page in zip(selections, pages, strict=True)
            if isinstance(page, Forbidden)
        ]
        records, *resource_lists = map(_page_items, pages)
        tracking_ids = {get_text(object_body(record), "data", "unit") for record in records}
        suspended |= {unit_id for unit_id in cluster_ids if unit_id.tracking_id in tracking_ids}
        suspended |= {
            UnitId(live.ref.kind.name, cluster, live.ref.namespace, live.ref.name)
            for resources in resource_lists
            for live in resources
            if _is_suspended_by_user(object_body(live))
        }
    return frozenset(suspended), tuple(unlisted)


async def _unit_resource_selections(
    ids: list[UnitId], cluster: str, session: Session
) -> list[Selection]:
    """Return selections of the unit resources whose kinds the cluster serves."""
    kinds = {
        (served_kind.kind.group, served_kind.kind.name): served_kind.kind
        for served_kind in await session.kinds(cluster)
    }
    groups = {unit_id: (_controller_group(unit_id.kind), unit_id.kind) for unit_id in ids}
    pairs = dict.fromkeys(
        (kinds[groups[unit_id]], unit_id.namespace) for unit_id in ids if groups[unit_id] in kinds
    )
    return [Selection(*pair) for pair in pairs]


def _controller_group(kind: str) -> str:
    return CONTROLLERS[kind].group if kind in CONTROLLERS else ""


def _is_suspended_by_user(unit_resource: JsonObject) -> bool:
    return is_suspended(unit_resource) and not is_paused_by_us(unit_resource)


def _page_items(page: Outcome) -> tuple[LiveObject, ...]:
    if is_error(page) and not isinstance(page, Forbidden | NotFound | NotServed):
        location = Location("units' own objects")
        raise error_from_outcome(page, "looking for what is suspended", location=location)
    return page.items if isinstance(page, ListPage) else ()
