"""Status of units and their objects: the difference to Git, and their health."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tidegate.clusters.journal import read_unit_journal
from tidegate.clusters.reader import get_objects
from tidegate.clusters.session import Session
from tidegate.dialect.units import is_dialect_kind
from tidegate.inspection.diff import EMPTY_PLAN, compare_objects
from tidegate.model.k8s.json_fields import get_text, object_kind, object_ref
from tidegate.model.k8s.objects import ClusterRef, JsonObject, LiveObject, Ref, object_body
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.plans.change import DiffAction, Difference
from tidegate.model.plans.plan import Plan, PlannedUnit, Step, managed_items
from tidegate.model.units.unit import Unit, UnitId
from tidegate.plan.changes.selection import select_refs
from tidegate.planning.plan import PlanResult
from tidegate.removal.moved_releases import with_removals
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.selection import (
    unit_resource_documents,
    unit_resources,
    unit_rows,
)
from tidegate.workspace.workspace import Workspace
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import RunWorker

MISSING = Verdict(Health.MISSING, "Missing", "not found")
NO_OBJECTS = Verdict(Health.HEALTHY, "Empty", "no objects")
HEALTH_ORDER = (
    *(Health.HEALTHY, Health.SUSPENDED, Health.PROGRESSING),
    *(Health.UNKNOWN, Health.MISSING, Health.DEGRADED),
)
"""Health from best to worst."""


class ObjectStatus(msgspec.Struct, frozen=True):
    """Sync status and health of one object."""

    ref: Ref
    wave: int
    is_synced: bool
    verdict: Verdict
    cluster: str = ""
    unit: UnitId | None = None
    requires_pruning: bool = False
    """Whether the object is no longer in Git."""
    body: bytes = b""
    """The live body; empty if the object does not exist."""


class PlanStatus(msgspec.Struct, frozen=True):
    """A plan with its pending deletions, and the status of its objects in plan order."""

    plan: Plan
    objects: list[ObjectStatus]


async def read_status(plan_result: PlanResult, session: Session) -> list[ObjectStatus]:
    """Return the status of all objects of a plan, in its order."""
    return (await _read_plan_status(plan_result, session)).objects


async def _read_plan_status(plan_result: PlanResult, session: Session) -> PlanStatus:
    """Return the status of all objects with the plan, which also has the hooks."""
    compared = await compare_objects(await with_removals(plan_result, session), session)
    return await judge_objects(compared.plan, compared.differences, compared.live_objects, session)


async def judge_objects(
    plan: Plan,
    differences: Mapping[ClusterRef, Difference],
    live_objects: dict[ClusterRef, LiveObject],
    session: Session,
) -> PlanStatus:
    """Return the status of the objects of a plan that was compared with the live objects."""
    verdicts = await _judge_all(plan, live_objects, session)
    _judge_units(plan, verdicts)
    objects = [
        ObjectStatus(
            cluster_ref.ref,
            step.wave,
            differences[cluster_ref].action is DiffAction.KEEP,
            verdicts.get(cluster_ref, MISSING),
            cluster_ref.cluster,
            step.unit,
            differences[cluster_ref].action is DiffAction.PRUNE,
            live.body if (live := live_objects.get(cluster_ref)) is not None else b"",
        )
        for step in plan.steps
        for cluster_ref in _refs_without_hooks(step)
    ]
    return PlanStatus(plan, objects)


async def _judge_all(
    plan: Plan, live_objects: dict[ClusterRef, LiveObject], session: Session
) -> dict[ClusterRef, Verdict]:
    """Return a verdict for each live object."""
    units = {unit.id: unit for unit in plan.units}
    objects = (
        (cluster_ref, units[step.unit], object_body(live_objects[cluster_ref]))
        for step in plan.steps
        for cluster_ref in _refs_without_hooks(step)
        if cluster_ref in live_objects
    )
    return await judge_bodies(objects, session)


async def judge_bodies(
    objects: Iterable[tuple[ClusterRef, PlannedUnit, JsonObject]], session: Session
) -> dict[ClusterRef, Verdict]:
    """Return a verdict for each object, by the rules of its unit; scripts run in one batch."""
    evaluator, now = session.evaluator, session.world.now()
    verdicts: dict[ClusterRef, Verdict] = {}
    scripted: list[tuple[ClusterRef, JsonObject, RunWorker]] = []
    for cluster_ref, unit, body in objects:
        call = evaluator.health_script(unit, body, now)
        if call is None:
            verdicts[cluster_ref] = evaluator.evaluate_health(unit, body, now)
        else:
            scripted.append((cluster_ref, body, call))
    outcomes = await send_requests(session.world, *(call for *_, call in scripted))
    for (cluster_ref, body, call), outcome in zip(scripted, outcomes, strict=True):
        verdicts[cluster_ref] = evaluator.verdict_from_script(call, outcome, body)
    return verdicts


def _judge_units(plan: Plan, verdicts: dict[ClusterRef, Verdict]) -> None:
    """Set the verdict of each unit resource to the worst verdict of the unit's objects.

    Nothing else writes the status of a unit resource.
    """
    units = {unit.id: unit for unit in plan.units}
    refs_by_unit: dict[UnitId, list[ClusterRef]] = {}
    for step in plan.steps:
        refs_by_unit.setdefault(step.unit, []).extend(_refs_without_hooks(step))
    # The objects of a unit come after its resource, so read the plan backwards.
    for step in reversed(plan.steps):
        for cluster_ref in _refs_without_hooks(step):
            ref = cluster_ref.ref
            name = UnitId(ref.kind.name, step.cluster, ref.namespace, ref.name)
            if name in units and is_dialect_kind(ref.kind) and cluster_ref in verdicts:
                worst = worst_verdict(
                    verdicts.get(inner, MISSING) for inner in refs_by_unit.get(name, ())
                )
                verdicts[cluster_ref] = msgspec.structs.replace(
                    worst, message="worst health of its objects"
                )


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict, or `NO_OBJECTS`."""
    return max(verdicts, key=lambda verdict: HEALTH_ORDER.index(verdict.health), default=NO_OBJECTS)


def _refs_without_hooks(step: Step) -> list[ClusterRef]:
    """Return the objects of a step that are not hooks."""
    return [ClusterRef(step.cluster, item.ref) for item in managed_items(step) if item.hook is None]


class UnitStatus(msgspec.Struct, frozen=True):
    """Status of a unit: its wave, its unit resource and its objects."""

    unit: Unit
    wave: int | None = None
    """Wave of the unit in its parent."""
    unit_resource: JsonObject = msgspec.field(default_factory=dict)
    """The unit resource as Git has it; empty if there is none."""
    live_resource: JsonObject = msgspec.field(default_factory=dict)
    """The live unit resource; empty if there is none."""
    objects: tuple[ObjectStatus, ...] = ()
    plan: Plan = EMPTY_PLAN
    """The plan of all units that were read together."""

    @property
    def is_synced(self) -> bool:
        return all(object_status.is_synced for object_status in self.objects)

    @property
    def verdict(self) -> Verdict:
        return worst_verdict(
            object_status.verdict
            for object_status in self.objects
            if not object_status.requires_pruning
        )


async def read_unit_statuses(
    workspace: Workspace, plan_result: PlanResult, session: Session, kinds: Collection[str]
) -> list[UnitStatus]:
    """Return the status of the selected units of these kinds, parents first, ordered by wave.

    `plan_result`: the plan of the workspace.
    """
    objects: dict[UnitId, list[ObjectStatus]] = {}
    plan_status = await _read_plan_status(plan_result, session)
    for status in plan_status.objects:
        if status.unit is not None:
            objects.setdefault(status.unit, []).append(status)
    unit_trees, selected = workspace.repository_trees, workspace.selected_names
    units = {
        member.unit.id: member.unit
        for member in workspace.members
        if member.unit.id.kind in kinds and (not selected or str(member.unit.id) in selected)
    }
    desired_resources = {
        name: document.body
        for name, document in unit_resources(unit_trees).items()
        if name in units
    }
    live_resources = await _read_live_resources(desired_resources, session)
    return [
        UnitStatus(
            units[row.unit.id],
            row.wave,
            desired_resources.get(row.unit.id, {}),
            live_resources.get(row.unit.id, {}),
            tuple(objects.get(row.unit.id, ())),
            plan_status.plan,
        )
        for row in unit_rows(unit_trees)
        if row.unit.id in units
    ]


def filter_unit_statuses(
    statuses: Sequence[UnitStatus], resources: Sequence[str]
) -> list[UnitStatus]:
    """Keep only the named objects, given as `GROUP:KIND:[NAMESPACE/]NAME`.

    Raises PlanError if a name matches no object.
    """
    if not resources:
        return [*statuses]
    selected = select_refs(
        (object_status.ref for status in statuses for object_status in status.objects), resources
    )
    filtered = (
        replace(
            status,
            objects=tuple(
                object_status for object_status in status.objects if object_status.ref in selected
            ),
        )
        for status in statuses
    )
    return [status for status in filtered if status.objects]


async def is_deleted(status: UnitStatus, session: Session) -> bool:
    """Return whether a unit is deleted: its unit resource, and its objects or its journal."""
    if status.live_resource:
        return False
    if all(object_status.verdict.health is Health.MISSING for object_status in status.objects):
        return True
    return not (await read_unit_journal(status.unit, session)).secrets


async def read_desired_and_live(
    unit_trees: Iterable[UnitTree], kinds: Sequence[str], session: Session, scan: RepositoryScan
) -> list[tuple[JsonObject, JsonObject]]:
    """Return objects of these kinds as pairs of desired and live body.

    Objects that units deploy come first, then those in the repository that no unit deploys.
    """
    deployed = (
        document for unit_tree in unit_trees for document in unit_resource_documents(unit_tree)
    )
    desired = {
        object_ref(document.body): document.body
        for document in deployed
        if get_text(document.body, "kind") in kinds
    }
    known = {(ref.kind.name, ref.name) for ref in desired}
    scanned = (
        document
        for name in scan.documents
        if scan.is_searched(name)
        for document in scan.documents[name]
    )
    for ref, body in ((object_ref(document.body), document.body) for document in scanned):
        is_source = ref.kind.name in kinds and is_dialect_kind(ref.kind)
        if is_source and (ref.kind.name, ref.name) not in known:
            desired.setdefault(ref, body)
    live_objects = await session.reader().get_many(desired)
    return [
        (body, object_body(live_objects[ref]) if ref in live_objects else {})
        for ref, body in desired.items()
    ]


async def _read_live_resources(
    desired_resources: dict[UnitId, JsonObject], session: Session
) -> dict[UnitId, JsonObject]:
    cluster_refs = {
        ClusterRef(id_.cluster, Ref(object_kind(body), id_.namespace, id_.name)): id_
        for id_, body in desired_resources.items()
    }
    live_objects = await get_objects(session.world, cluster_refs)
    return {cluster_refs[name]: object_body(live) for name, live in live_objects.items()}
