"""Preview of a rollout: the plan compared with the live objects."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tidegate.clusters.diff import UNCHANGED, find_difference, is_replaced
from tidegate.clusters.journal import read_journal
from tidegate.clusters.reader import ClusterReader
from tidegate.clusters.session import Session
from tidegate.errors import TidegateError
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import ClusterRef, JsonObject, object_body
from tidegate.model.plans.change import DiffAction, Difference, mask_fields
from tidegate.model.plans.plan import (
    ItemAction,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    managed_items,
)
from tidegate.model.units.release_history import DriftMode
from tidegate.model.units.semantics import TIDEGATE
from tidegate.model.units.unit import UnitId
from tidegate.model.views.unit_states import UnitState
from tidegate.planning.dry_run import dry_run_plan
from tidegate.planning.exclusions import apply_suspensions
from tidegate.planning.plan import PlanResult, make_plan
from tidegate.planning.policies import with_drift_detection
from tidegate.removal.moved_releases import with_removals
from tidegate.removal.prune import find_collateral_deletions, with_prune_steps
from tidegate.workers.jq import Jq
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.workspace import Workspace
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.requests import Selection

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
    live_objects: dict[ClusterRef, bytes]
    """Encoded bodies of the live objects."""


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
    return await make_plan(with_drift_detection(unit_trees), session, resources, TIDEGATE)


async def compare_plan(plan_result: PlanResult, session: Session) -> LivePreview:
    """Compare a plan with the live objects, without preflight checks."""
    world = session.world
    plan = await with_prune_steps(plan_result.plan, session)
    by_id = {unit.id: unit for unit in plan.units}
    owners = {
        ClusterRef(step.cluster, item.ref): (item, by_id[step.unit])
        for step in plan.steps
        for item in managed_items(step)
    }
    live_objects = await _read_live(world, owners)
    bodies = {
        cluster_ref: _decode(live_objects[cluster_ref])
        for cluster_ref in owners
        if cluster_ref in live_objects
    }
    replaced = {
        cluster_ref
        for cluster_ref, (item, _) in owners.items()
        if is_replaced(item, bodies.get(cluster_ref))
    }
    fingerprints = await _read_fingerprints(
        {replaced_ref: owners[replaced_ref] for replaced_ref in replaced & bodies.keys()},
        bodies,
        world,
    )
    jq = session.evaluator.jq
    differences = {
        cluster_ref: _diff_deleted_item(item, unit)
        if item.action is ItemAction.DELETE
        else _diff_item(unit, item, bodies.get(cluster_ref), jq, fingerprints.get(cluster_ref, ""))
        for cluster_ref, (item, unit) in owners.items()
    }
    for cluster_ref, (item, unit) in owners.items():
        difference, body = differences[cluster_ref], bodies.get(cluster_ref)
        if item.hidden_fields:
            difference = mask_fields(difference, item.hidden_fields)
        if body is not None and difference.action is not DiffAction.KEEP:
            owner = session.evaluator.find_other_owner(unit, item, body)
            difference = replace(difference, other_owner=owner)
        differences[cluster_ref] = difference
    contents = await find_collateral_deletions(plan, session)
    notes = (*plan_result.notes, *contents)
    result = Preview(
        plan, differences, notes, plan_result.findings, plan_result.plan, content_notes=contents
    )
    return LivePreview(replace(result, unreadable_units=plan_result.unknown_units), live_objects)


def _diff_item(
    unit: PlannedUnit, item: PlanItem, live: JsonObject | None, jq: Jq, fingerprint: str
) -> Difference:
    """Return the difference of an item; none where drift is only reported or ignored."""
    if item.hook is None and unit.policy.drift in {DriftMode.WARN, DriftMode.DISABLED}:
        return UNCHANGED
    return find_difference(unit, item, live, jq, fingerprint)


def _diff_deleted_item(item: PlanItem, unit: PlannedUnit) -> Difference:
    needs_confirmation = item.requires_confirmation and not unit.policy.confirmed
    return Difference(action=DiffAction.KEEP if needs_confirmation else DiffAction.PRUNE)


def _decode(live: bytes) -> JsonObject:
    body: JsonObject = msgspec.json.decode(live)
    return body


async def _read_fingerprints(
    replaced: dict[ClusterRef, tuple[PlanItem, PlannedUnit]],
    bodies: dict[ClusterRef, JsonObject],
    world: Dispatcher,
) -> dict[ClusterRef, str]:
    """Return the fingerprints recorded when the same text was applied to the same live object."""
    units = {unit.id: unit for _, unit in replaced.values()}
    journals = {
        name: (await read_journal(unit, world)).journal.entries for name, unit in units.items()
    }
    fingerprints: dict[ClusterRef, str] = {}
    for cluster_ref, (item, unit) in replaced.items():
        entry, uid = (
            journals[unit.id].get(item.ref),
            get_text(bodies[cluster_ref], "metadata", "uid"),
        )
        if entry is not None and (entry.digest, entry.uid) == (item.digest, uid):
            fingerprints[cluster_ref] = entry.fields_digest
    return fingerprints


async def _read_live(
    world: Dispatcher, cluster_refs: Collection[ClusterRef]
) -> dict[ClusterRef, bytes]:
    """Return the encoded bodies of the objects that exist."""
    namespaces: dict[str, dict[Selection, dict[str, None]]] = {}
    for cluster_ref in sorted(cluster_refs):
        kinds = namespaces.setdefault(cluster_ref.cluster, {})
        kinds.setdefault(Selection(cluster_ref.ref.kind), {})[cluster_ref.ref.namespace] = None
    live_objects: dict[ClusterRef, bytes] = {}
    for cluster, kinds in namespaces.items():
        listing = await ClusterReader(world, cluster).list_in(kinds)
        # An object that cannot be read is not a missing object.
        listing.raise_errors("listing live objects")
        listed = ((ClusterRef(cluster, live.ref), live) for live in listing.items)
        live_objects |= {
            cluster_ref: msgspec.json.encode(object_body(live))
            for cluster_ref, live in listed
            if cluster_ref in cluster_refs
        }
    return live_objects
