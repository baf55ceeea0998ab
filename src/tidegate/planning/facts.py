"""What planning must know of clusters. It is read here, before a plan is made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.clusters.reader import get_objects
from tidegate.clusters.session import Session
from tidegate.model.k8s.objects import ClusterRef, LiveObject, ServedKind
from tidegate.model.times import Ms
from tidegate.planning.projects import (
    find_orphan_namespaces,
    find_unpermitted_namespaces,
    select_possible_orphans,
)
from tidegate.workspace.discovery.unit_tree import RenderedUnit


class PlanningFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters of a plan at one time, and the rules by which their objects are evaluated."""

    kinds: Mapping[str, tuple[ServedKind, ...]]
    """By cluster, the kinds that it serves."""
    existing: Collection[ClusterRef] = ()
    """Namespaces that exist, of those that a unit may not apply."""
    orphans: Mapping[tuple[str, str], tuple[LiveObject, ...]] = {}
    """By cluster and namespace, the live objects that may be orphaned, if a project warns."""
    evaluator: DefaultEvaluator
    root: Path
    """The directory that the locations of objects are relative to."""
    now: Ms
    is_simulated: bool


async def read_planning_facts(members: Iterable[RenderedUnit], session: Session) -> PlanningFacts:
    """Ask the clusters of these units for everything that planning must know."""
    units = [member.unit for member in members]
    clusters = dict.fromkeys(unit.destination.cluster for unit in units)
    kinds = {cluster: await session.kinds(cluster) for cluster in clusters}
    orphans: dict[tuple[str, str], tuple[LiveObject, ...]] = {}
    for cluster, namespace in find_orphan_namespaces(units):
        selections = select_possible_orphans(kinds[cluster], namespace)
        listing = await session.reader(cluster).list_each(selections)
        orphans[cluster, namespace] = tuple(listing.items)
    return PlanningFacts(
        kinds=kinds,
        existing=await get_objects(session.world, find_unpermitted_namespaces(units)),
        orphans=orphans,
        evaluator=session.evaluator,
        root=session.repository.root,
        now=session.world.now(),
        is_simulated=session.targets.simulation is not None,
    )
