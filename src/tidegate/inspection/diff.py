"""Preview of a rollout: the plan compared with the live objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tidegate.clusters.diff import UNCHANGED
from tidegate.clusters.reader import ClusterReader, run_procedure
from tidegate.clusters.session import Session
from tidegate.controllers.takeover import keep_paused
from tidegate.engine.cluster.compare import (
    ComparedItem,
    ObjectComparer,
    has_work,
    will_be_modified,
)
from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.procedures import gather
from tidegate.engine.evaluator import ObjectEvaluator
from tidegate.engine.histories import ReleaseHistories
from tidegate.engine.messages import ComparedObject, CompareResult
from tidegate.engine.preparation import find_taken_over, without_idle_hooks
from tidegate.engine.records.record import UnitRecord
from tidegate.errors import Location, TidegateError
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import ClusterRef, LiveObject, object_body
from tidegate.model.plans.change import DiffAction, Difference
from tidegate.model.plans.plan import (
    ItemAction,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    managed_items,
)
from tidegate.model.units.semantics import TIDEGATE
from tidegate.model.units.unit import UnitId
from tidegate.model.views.unit_states import UnitState
from tidegate.planning.dry_run import dry_run_plan
from tidegate.planning.exclusions import apply_suspensions
from tidegate.planning.plan import PlanResult
from tidegate.planning.policies import with_drift_detection
from tidegate.planning.preparation import prepare_plan
from tidegate.releases.history import build_history, has_releases
from tidegate.removal.moved_releases import with_removals
from tidegate.removal.prune import find_collateral_deletions, with_prune_steps
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.workspace import Workspace
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import Forbidden
from tidegate.world.requests import Selection

MODIFICATIONS = {
    CompareResult.ABSENT: DiffAction.CREATE,
    CompareResult.IMMUTABLE: DiffAction.RECREATE,
    CompareResult.RECREATE: DiffAction.RECREATE,
}
"""What a rollout does by the result of a comparison; it changes other objects."""
EMPTY_PLAN = Plan.from_fragment(PlanFragment())
NO_PLAN = PlanResult(EMPTY_PLAN, ())


class Preview(msgspec.Struct, frozen=True):
    """A plan, its differences from the live objects, and the findings about it."""

    plan: Plan
    differences: dict[ClusterRef, Difference]
    notes: tuple[TidegateError, ...] = ()
    findings: tuple[Finding, ...] = ()
    desired_plan: Plan = EMPTY_PLAN
    """The plan as Git has it, before deletions are added."""
    rejected_count: int = 0
    """Number of objects that the cluster would reject."""
    unreadable_units: tuple[UnitId, ...] = ()
    """Units whose manifests could not be read."""
    content_notes: tuple[TidegateError, ...] = ()
    """The notes about objects of other owners that would be deleted along."""
    unit_states: tuple[UnitState, ...] = ()
    """The states of units in the cluster, as their engines show them."""

    @property
    def has_changes(self) -> bool:
        return any(
            difference.action is not DiffAction.KEEP for difference in self.differences.values()
        )


class LivePreview(NamedTuple):
    """A preview and the live objects that it was compared with."""

    preview: Preview
    live_objects: dict[ClusterRef, LiveObject]


class ComparedPlan(NamedTuple):
    """A plan with its deletions, compared with the live objects."""

    plan: Plan
    differences: dict[ClusterRef, Difference]
    live_objects: dict[ClusterRef, LiveObject]
    working_units: tuple[UnitId, ...]
    """The units that a rollout would write to, or whose gates have not opened."""


async def preview_workspace(
    session: Session, workspace: Workspace, resources: tuple[str, ...] = ()
) -> tuple[Workspace, list[Preview]]:
    """Return the workspace and a preview of each of its alternatives."""
    previews = [
        await preview(alternative.unit_trees, session, resources)
        for alternative in workspace.split_alternatives()
    ]
    return workspace, previews


async def preview(
    unit_trees: Sequence[UnitTree],
    session: Session,
    resources: tuple[str, ...] = (),
) -> Preview:
    """Plan units, compare them with the live objects and run the preflight checks."""
    return (await preview_with_preflight(unit_trees, session, resources)).preview


async def preview_with_preflight(
    unit_trees: Sequence[UnitTree],
    session: Session,
    resources: tuple[str, ...] = (),
) -> LivePreview:
    """Return what `preview` returns, with the live objects."""
    unit_trees, suspension_findings = await apply_suspensions(unit_trees, session)
    compared, live_objects = await preview_against_live(unit_trees, session, resources)
    rejections = await dry_run_plan(compared.desired_plan, session)
    findings = (*compared.findings, *suspension_findings, *rejections.findings)
    return LivePreview(
        replace(compared, findings=findings, rejected_count=rejections.objects), live_objects
    )


async def preview_against_live(
    unit_trees: Sequence[UnitTree], session: Session, resources: tuple[str, ...] = ()
) -> LivePreview:
    """Plan units and compare them with the live objects, without preflight checks."""
    plan_result = await plan_units(unit_trees, session, resources)
    plan_result = plan_result if resources else await with_removals(plan_result, session)
    return await compare_plan(plan_result, session)


async def plan_units(
    unit_trees: Sequence[UnitTree], session: Session, resources: tuple[str, ...] = ()
) -> PlanResult:
    """Return the plan of units as Git has them, with drift detection."""
    return await prepare_plan(with_drift_detection(unit_trees), session, resources, TIDEGATE)


async def compare_plan(plan_result: PlanResult, session: Session) -> LivePreview:
    """Compare what a rollout would do with the live objects, without preflight checks.

    Hooks that would not run are left out.
    """
    compared = await compare_objects(plan_result, session)
    histories = ReleaseHistories(
        await build_history(plan_result, session, stores_charts=False)
        if has_releases(plan_result.plan)
        else None
    )
    outcome = await run_procedure(histories.read(compared.plan.units), session.world)
    raise_for_error(outcome, "reading the release history", Location("the cluster"))
    plan = without_idle_hooks(compared.plan, compared.working_units, histories, session.evaluator)
    differences = {
        cluster_ref: compared.differences[cluster_ref]
        for step in plan.steps
        for item in managed_items(step)
        if (cluster_ref := ClusterRef(step.cluster, item.ref)) in compared.differences
    }
    contents = await find_collateral_deletions(plan, session)
    preview = Preview(
        plan,
        differences,
        (*plan_result.notes, *contents),
        plan_result.findings,
        plan_result.plan,
        content_notes=contents,
        unreadable_units=plan_result.unknown_units,
    )
    return LivePreview(preview, compared.live_objects)


async def compare_objects(plan_result: PlanResult, session: Session) -> ComparedPlan:
    """Compare all objects of a plan and its deletions with the live objects, as a rollout does."""
    world, evaluator = session.world, session.evaluator
    plan_result = await keep_paused(plan_result, session)
    plan = await with_prune_steps(plan_result.plan, session)
    units = {unit.id: unit for unit in plan.units}
    managed = [(step, item) for step in plan.steps for item in managed_items(step)]
    live_objects = await _read_live(
        world, {ClusterRef(step.cluster, item.ref) for step, item in managed}
    )
    comparer = ObjectComparer(evaluator, LiveCache(objects=live_objects), units)
    without_record = [(step, item, comparer.compare(step, item, None)) for step, item in managed]
    unsettled = {
        step.unit
        for step, item, compared in without_record
        if item.hook is not None or compared.result is not CompareResult.IN_SYNC
    }
    records = await _read_records([unit for unit in plan.units if unit.id in unsettled], world)
    compared_items: list[ComparedItem] = []
    working_units: dict[UnitId, None] = {}
    for step, item, first in without_record:
        unit, record, compared = units[step.unit], records.get(step.unit), first
        if record is not None:
            counts = item.hook is None or record.is_in_progress(unit.digest)
            entry = record.entries.get(item.ref) if counts else None
            compared = comparer.compare(step, item, entry)
            completed = record.is_completed(unit.digest)
            if has_work(unit, (step, item, compared), entry, completed=completed):
                working_units.setdefault(unit.id)
        compared_items.append((step, item, compared))
    taken_over = find_taken_over(
        plan, compared_items, records, live_objects, evaluator, world.now()
    )
    differences = {
        compared.object_ref: _with_other_owner(
            _difference(units[step.unit], item, compared),
            units[step.unit],
            item,
            live_objects.get(compared.object_ref),
            evaluator,
        )
        for step, item, compared in compared_items
    }
    working = tuple(unit for unit in working_units if unit not in taken_over)
    return ComparedPlan(plan, differences, live_objects, working)


def _with_other_owner(
    difference: Difference,
    unit: PlannedUnit,
    item: PlanItem,
    live: LiveObject | None,
    evaluator: ObjectEvaluator,
) -> Difference:
    """Return the difference with the unit or Helm release that loses a changed object."""
    if live is None or difference.action is DiffAction.KEEP:
        return difference
    owner = evaluator.find_other_owner(unit, item, object_body(live))
    return replace(difference, other_owner=owner)


def _difference(unit: PlannedUnit, item: PlanItem, compared: ComparedObject) -> Difference:
    """Return what a rollout does with an object."""
    if not will_be_modified(item, compared, confirmed=unit.policy.confirmed):
        return UNCHANGED
    action = MODIFICATIONS.get(compared.result, DiffAction.CHANGE)
    if item.action is ItemAction.DELETE:
        action = DiffAction.PRUNE
    elif compared.replaces and action is DiffAction.CHANGE:
        action = DiffAction.REPLACE
    has_fields = action not in {DiffAction.PRUNE, DiffAction.CREATE}
    return Difference(
        action=action,
        fields=compared.fields if has_fields else (),
        immutable_fields=compared.immutable_fields if has_fields else (),
    )


async def _read_records(
    units: Iterable[PlannedUnit], world: Dispatcher
) -> dict[UnitId, UnitRecord]:
    """Return the records of units; empty ones of units whose records the user may not read."""
    records = {unit.id: UnitRecord(unit.id.tracking_id, unit.cluster) for unit in units}
    reads = gather(record.read(world.now) for record in records.values())
    for unit_id, outcome in zip(records, await run_procedure(reads, world), strict=True):
        location = Location(f"unit {unit_id}")
        raise_for_error(outcome, "reading the journal", location, ignored=Forbidden)
    return records


async def _read_live(
    world: Dispatcher, cluster_refs: Collection[ClusterRef]
) -> dict[ClusterRef, LiveObject]:
    """Return the objects that exist."""
    namespaces: dict[str, dict[Selection, dict[str, None]]] = {}
    for cluster_ref in sorted(cluster_refs):
        kinds = namespaces.setdefault(cluster_ref.cluster, {})
        kinds.setdefault(Selection(cluster_ref.ref.kind), {})[cluster_ref.ref.namespace] = None
    live_objects: dict[ClusterRef, LiveObject] = {}
    for cluster, kinds in namespaces.items():
        listing = await ClusterReader(world, cluster).list_in(kinds)
        # An object that cannot be read is not a missing object.
        listing.raise_errors("listing live objects")
        listed = ((ClusterRef(cluster, live.ref), live) for live in listing.items)
        live_objects |= {
            cluster_ref: live for cluster_ref, live in listed if cluster_ref in cluster_refs
        }
    return live_objects
