"""Units that were removed from Git while their parent still exists.

Their objects are deleted if the parent prunes and the unit cascades: as set in the live unit
resource, or else in the record. Otherwise the objects are kept, with a finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.clusters.evaluator import removal_candidate
from tidegate.clusters.journal import read_journal
from tidegate.clusters.reader import get_objects, run_procedure
from tidegate.clusters.session import Session
from tidegate.dialect.argo.application import cascade_propagation
from tidegate.dialect.argo.waves import live_wave
from tidegate.dialect.ownership.tracking import APPLICATION_SET
from tidegate.dialect.semantics import KSTATUS
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE, list_heads, read_head
from tidegate.errors import ClusterError
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.display import join_limited
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.kinds import APPLICATION
from tidegate.model.k8s.objects import ClusterRef, Propagation, Ref, object_body, versionless_key
from tidegate.model.plans.plan import (
    Edge,
    EdgeReason,
    Plan,
    PlanFragment,
    PlannedUnit,
    Step,
    step_items,
)
from tidegate.model.rollouts.journal import UnitOrigin
from tidegate.model.units.policy import Order, Policy, Tracking
from tidegate.model.units.unit import Destination, Unit, UnitId
from tidegate.plan.build.build import plan_unit
from tidegate.plan.build.cycles import sort_steps
from tidegate.plan.changes.delete_unit import build_deletion, with_unit_resource
from tidegate.planning.exclusions import find_suspended
from tidegate.planning.plan import PlanResult
from tidegate.removal.uninstall import (
    find_leftover_releases,
    read_uninstall,
    remaining_resources,
    uninstall_policy,
)

FLUX_KINDS = ("Kustomization", "HelmRelease")
ARGO_POLICY = Policy(tracking=Tracking.ARGO, manager="argocd-controller")
POLICIES = {"Application": ARGO_POLICY, APPLICATION_SET: Policy(order=Order.NONE)}
FLUX_POLICY = Policy(tracking=Tracking.FLUX, rules=KSTATUS, order=Order.STAGES)


class _RemovedUnit(msgspec.Struct, frozen=True):
    """A unit with a record in a cluster that is no longer in Git."""

    origin: UnitOrigin
    unit: Unit
    is_deleted: bool
    """Whether its objects are deleted."""
    is_suspended: bool


class _LiveSettings(NamedTuple):
    """Deletion propagation and wave of a live unit resource."""

    propagation: Propagation | None
    wave: int


NO_SETTINGS = _LiveSettings(None, 0)


class _Removal(NamedTuple):
    """The plan that removes a unit, its parent, and its wave."""

    plan: Plan
    parent: UnitId
    wave: int


async def with_removed_units(plan_result: PlanResult, session: Session) -> PlanResult:
    """Return the plan with the removal of units that left Git, and findings about them."""
    plan, findings, removed = plan_result.plan, list(plan_result.findings), list[PlannedUnit]()
    origins = [
        entry
        for cluster in session.targets.contexts
        for entry in await _list_origins(cluster, session, findings)
    ]
    origins += await find_leftover_releases(
        plan.units, plan_result.all_units | {origin.unit for origin, _ in origins}, session
    )
    flux_units = [
        origin.unit
        for origin, _ in origins
        if origin.unit not in plan_result.all_units and origin.unit.kind in FLUX_KINDS
    ]
    suspended = await find_suspended(flux_units, session)
    live_settings = await _read_live_settings(origins, plan_result, session)
    removed_units = _find_removed_units(
        plan_result, _with_live_settings(origins, live_settings), session, suspended
    )
    deleted_ids = {
        removed_unit.unit.id for removed_unit in removed_units if removed_unit.is_deleted
    }
    planned = {
        (step.cluster, *versionless_key(item.ref))
        for step in plan.steps
        for item in step_items(step)
    }
    units = {unit.id: unit for unit in plan.units}
    removals: dict[UnitId, _Removal] = {}
    for removed_unit in removed_units:
        try:
            removal, refs = await _plan_removal(removed_unit, planned, deleted_ids, session)
        except ClusterError as error:
            if not error.code.startswith("journal."):
                raise
            findings.append(_unreadable_finding(error))
            continue
        if removed_unit.is_deleted:
            parent = units.get(removed_unit.origin.parent)
            removal = with_unit_resource(
                removal, await remaining_resources(removed_unit.origin, parent, session)
            )
            removals[removed_unit.unit.id] = _Removal(
                removal,
                removed_unit.origin.parent,
                live_settings.get(removed_unit.unit.id, NO_SETTINGS).wave,
            )
            removed.append(removal.units[0])
        if removed_unit.is_deleted or refs:
            findings.append(_removed_finding(removed_unit, refs))
    plan = _with_removals(plan, removals) if removals else plan
    return replace(plan_result, plan=plan, findings=tuple(findings), removed_units=tuple(removed))


async def _plan_removal(
    removed_unit: _RemovedUnit,
    planned: Collection[tuple[str, ...]],
    deleted_ids: Collection[UnitId],
    session: Session,
) -> tuple[Plan, list[Ref]]:
    """Return the plan of a removal, and the unit's objects. Raises if the journal is unreadable."""
    unit = plan_unit(removed_unit.unit)
    entries = (await read_journal(unit, session.world)).journal.entries
    uninstall_hooks, released = await read_uninstall(removed_unit.unit, session)
    live_objects = await session.reader(unit.cluster).get_many((*entries, *released))
    hooks = removed_unit.origin.release is None  # release hooks follow their own delete policies
    candidates = (
        removal_candidate(object_body(live), unit, deleted_ids, hooks=hooks)
        for live in dict.fromkeys(live_objects.values())
    )
    pruned = [
        candidate
        for candidate in candidates
        if candidate and (unit.cluster, *versionless_key(candidate.ref)) not in planned
    ]
    return build_deletion(uninstall_hooks, pruned, readiness_timeout=readiness_timeout), [
        candidate.ref for candidate in pruned
    ]


def _find_removed_units(
    plan_result: PlanResult,
    origins: list[tuple[UnitOrigin, str]],
    session: Session,
    suspended: Collection[UnitId],
) -> list[_RemovedUnit]:
    """Return the removed units whose parents are fully known, or also removed.

    `suspended`: Flux only removes the finalizers of suspended units, and keeps their objects.
    """
    complete = {
        unit_manifests.manifests.unit.id
        for unit_manifests in plan_result.unit_manifests
        if unit_manifests.is_complete
    }
    prunes = {
        planned_unit.id: planned_unit.policy.prune
        for planned_unit in plan_result.plan.units
        if planned_unit.id in complete
    }
    pending = [entry for entry in origins if entry[0].unit not in plan_result.all_units]
    deletes_contents = any(
        planned_unit.policy.delete_contents for planned_unit in plan_result.plan.units
    )
    removed: list[_RemovedUnit] = []
    recorded = {origin.unit for origin, _ in origins} | plan_result.all_units

    def deletes_objects(unit_origin: UnitOrigin) -> bool | None:
        """Return whether the unit's objects are deleted; None if no parent decides it."""
        if unit_origin.parent in prunes:
            return unit_origin.cascades and prunes[unit_origin.parent]
        if unit_origin.grandparent in prunes and unit_origin.parent not in recorded:
            return (
                unit_origin.cascades
                and unit_origin.is_deleted_with_parent
                and prunes[unit_origin.grandparent]
            )
        return None

    while decided := [entry for entry in pending if deletes_objects(entry[0]) is not None]:
        for origin, cluster in decided:
            is_deleted = deletes_objects(origin) is True and origin.unit not in suspended
            prunes[origin.unit] = is_deleted
            policy = structs.replace(
                _removal_policy(origin, session),
                deletion_propagation=origin.deletion_propagation,
                delete_contents=deletes_contents,
                cascades=origin.cascades,
            )
            destination = Destination(cluster)
            unit = Unit(
                id=origin.unit, destination=destination, policy=policy, parent=origin.parent
            )
            removed.append(_RemovedUnit(origin, unit, is_deleted, origin.unit in suspended))
        pending = [entry for entry in pending if entry not in decided]
    return removed


async def _read_live_settings(
    origins: list[tuple[UnitOrigin, str]], plan_result: PlanResult, session: Session
) -> dict[UnitId, _LiveSettings]:
    """Return the settings of Applications that left Git and are still live."""
    cluster_refs = {
        ClusterRef(unit.cluster, Ref(APPLICATION, unit.namespace, unit.name)): unit
        for unit in (origin.unit for origin, _ in origins)
        if unit not in plan_result.all_units
        and unit.kind == APPLICATION.name
        and unit.cluster in session.targets.contexts
    }
    live_objects = await get_objects(session.world, cluster_refs)
    bodies = {cluster_refs[name]: object_body(live) for name, live in live_objects.items()}
    return {
        unit: _LiveSettings(cascade_propagation(body), live_wave(body))
        for unit, body in bodies.items()
    }


def _with_live_settings(
    origins: list[tuple[UnitOrigin, str]], live_settings: Mapping[UnitId, _LiveSettings]
) -> list[tuple[UnitOrigin, str]]:
    """Return the origins with the deletion settings of live Applications, which Argo CD uses."""
    return [
        (
            (
                _with_propagation(origin, live_settings[origin.unit].propagation)
                if origin.unit in live_settings
                else origin
            ),
            cluster,
        )
        for origin, cluster in origins
    ]


def _with_propagation(origin: UnitOrigin, propagation: Propagation | None) -> UnitOrigin:
    return structs.replace(
        origin, cascades=propagation is not None, deletion_propagation=propagation
    )


def _removal_policy(origin: UnitOrigin, session: Session) -> Policy:
    """Return the policy of a removed unit; Argo CD may track its objects by a label."""
    if origin.release is not None:
        return uninstall_policy(origin.release)
    label, policy = session.evaluator.owner_label, POLICIES.get(origin.unit.kind, FLUX_POLICY)
    return structs.replace(policy, instance_label=label, labels_only=bool(label))


async def _list_origins(
    cluster: str, session: Session, findings: list[Finding]
) -> list[tuple[UnitOrigin, str]]:
    """Return the recorded units of a cluster that have a parent; unreadable ones as findings."""
    heads = await run_procedure(list_heads(cluster, TIDEGATE_NAMESPACE), session.world)
    origins: list[tuple[UnitOrigin, str]] = []
    for live in (heads or {}).values():
        try:
            origin = read_head(live).origin
        except ClusterError as error:
            findings.append(_unreadable_finding(error))
        else:
            origins += [(origin, cluster)] if origin is not None else []
    return origins


def _unreadable_finding(error: ClusterError) -> Finding:
    """Return the finding about an unreadable record; only its unit is not removed."""
    return Finding(
        code="units.record-unreadable",
        severity=Severity.WARNING,
        message=(
            "a unit that may have been removed from Git is not deleted: its record cannot be read"
        ),
        location=error.location,
        reason=error.problem,
        fix=error.hint,
    )


def _with_removals(plan: Plan, removals: Mapping[UnitId, _Removal]) -> Plan:
    """Return the plan with the removals after it; a child is removed before its parent.

    The child comes between the steps of its parent's removal, as when both are deleted. Of two
    children of one parent, that of the later wave is removed first, as Argo CD prunes.
    """
    last_steps = {step.unit: step for step in plan.steps}
    steps = {step.id: step for removal in removals.values() for step in removal.plan.steps}
    edges = [
        *(edge for removal in removals.values() for edge in removal.plan.edges),
        *_wave_edges(removals),
    ]
    starts: list[Edge] = []
    for unit_id, unit_removal in removals.items():
        if not unit_removal.plan.steps:
            continue
        first, final = unit_removal.plan.steps[0].id, unit_removal.plan.steps[-1].id
        parent = unit_removal.parent
        if parent in removals and (chain := removals[parent].plan.steps):
            index = next(
                (index for index, step in enumerate(chain) if _deletes_unit(step, unit_id)), 0
            )
            edges.append(Edge(final, chain[index].id, EdgeReason.PARENT))
            edges += [Edge(chain[index - 1].id, first, EdgeReason.PARENT)] if index else []
        while parent in removals:
            parent = removals[parent].parent
        if parent in last_steps:
            starts.append(Edge(last_steps[parent].id, first, EdgeReason.PARENT))
    return Plan.from_fragment(
        PlanFragment(
            units=(
                *plan.units,
                *(unit for removal in removals.values() for unit in removal.plan.units),
            ),
            steps=(*plan.steps, *sort_steps(steps, edges)),
            edges=(*plan.edges, *edges, *starts),
            slots=plan.slots,
        )
    )


def _wave_edges(removals: Mapping[UnitId, _Removal]) -> Iterator[Edge]:
    """Yield the edges between waves of units of one parent."""
    by_parent: dict[UnitId, dict[int, list[Plan]]] = {}
    for removal in removals.values():
        if removal.plan.steps:
            by_parent.setdefault(removal.parent, {}).setdefault(removal.wave, []).append(
                removal.plan
            )
    for waves in by_parent.values():
        for later, earlier in pairwise(sorted(waves, reverse=True)):
            for first in waves[later]:
                for second in waves[earlier]:
                    yield Edge(first.steps[-1].id, second.steps[0].id, EdgeReason.PARENT)


def _deletes_unit(step: Step, unit: UnitId) -> bool:
    """Return whether a step deletes the unit resource of a unit."""
    key = (unit.kind, unit.namespace, unit.name)
    refs = (item.ref for item in step_items(step))
    return any((ref.kind.name, ref.namespace, ref.name) == key for ref in refs)


def _removed_finding(removed_unit: _RemovedUnit, refs: Collection[Ref]) -> Finding:
    names = join_limited(refs) or "none"
    action = "deleted" if removed_unit.is_deleted else "kept"
    why = f"its parent `{removed_unit.origin.parent}` does not prune"
    if removed_unit.origin.cascades is False:
        why = "it had no finalizer, or was set to keep its objects"
    if removed_unit.is_suspended:
        why = "it was suspended, and Flux keeps the objects of a suspended unit"
    return Finding(
        code="units.orphan",
        severity=Severity.NOTE if removed_unit.is_deleted else Severity.WARNING,
        message=(
            f"`{removed_unit.origin.unit}` was removed from Git; its objects are {action}: {names}"
        ),
        reason="" if removed_unit.is_deleted else why,
        fix=(
            ""
            if removed_unit.is_deleted
            else "delete the objects manually, or restore the unit and delete it"
        ),
    )
