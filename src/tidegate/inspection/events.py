"""Events and logs of units and their objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

import msgspec

from tidegate.clusters.journal import read_unit_journal
from tidegate.clusters.session import Session
from tidegate.dialect.controllers.requests import source_reference
from tidegate.errors import sanitize
from tidegate.inspection.lineage import Lineage, matches_kind, read_lineages
from tidegate.inspection.status import UnitStatus
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text
from tidegate.model.k8s.kinds import EVENT
from tidegate.model.k8s.objects import ClusterRef, JsonObject, object_body
from tidegate.model.k8s.verdict import Health
from tidegate.model.plans.plan import managed_items
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.causes import MAX_FAILURES
from tidegate.model.rollouts.evidence import ContainerLog, Evidence
from tidegate.model.times import Ms, parse_timestamp
from tidegate.model.units.unit import UnitId
from tidegate.model.views.events import EventRow
from tidegate.plan.build.hook_names import complete_hook_names
from tidegate.rollout.diagnosis import DiagnosisContext, collect_evidence, event_time, read_logs
from tidegate.workspace.selection import SelectedResource
from tidegate.workspace.workspace import Workspace
from tidegate.world.requests import Selection

InvolvedObject = tuple[str, str, str]
"""Kind, namespace and name of an object that an Event is about."""
KINDS_WITH_PODS = frozenset(
    [
        *("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
        *("ReplicationController", "Job", "CronJob"),
    ]
)
"""Kinds that have pods."""


async def read_events(
    workspace: Workspace, session: Session, selector: tuple[str, str], namespace: str
) -> list[EventRow]:
    """Return Events in the order of their timestamps.

    `selector`: a kind and a name; for a unit its source and its objects are included. With an
    empty name, all units and sources of the repository are selected. `namespace`: only Events
    in it.
    """
    lineages = await read_lineages(workspace, session)
    redactor = _redactor_for(lineages)
    rows: dict[EventRow, None] = {}
    for cluster in session.targets.contexts:
        involved = _involved_objects(lineages, cluster, selector)
        namespaces = (
            {involved_namespace for _, involved_namespace, _ in involved}
            if not namespace
            else {namespace}
        )
        selections = (Selection(EVENT, name or "default") for name in sorted(namespaces))
        for live in await session.reader(cluster).list_all(selections):
            body = object_body(live)
            if _is_selected(body, involved, selector):
                rows[_event_row(body, redactor)] = None
    return sorted(rows, key=lambda row: (row.at, row.object, row.reason))


def _redactor_for(lineages: Iterable[Lineage]) -> Redactor:
    redactor = Redactor()
    for lineage in lineages:
        redactor.add_secrets(lineage.plan)
    return redactor


def _involved_objects(
    lineages: Iterable[Lineage], cluster: str, selector: tuple[str, str]
) -> set[InvolvedObject]:
    """Return the selected objects that Events may be about."""
    kind, name = selector
    involved: set[InvolvedObject] = set()
    for lineage in lineages:
        resources = [resource for resource in lineage.resources if resource.id.cluster == cluster]
        for resource in resources:
            is_named = (
                matches_kind(resource.cluster_ref.ref.kind, kind) and resource.id.name == name
            )
            if not name or is_named:
                involved.add((resource.id.kind, resource.id.namespace, resource.id.name))
            if is_named:
                involved |= _related_objects(lineage, resource)
        for item in (managed for items in lineage.objects.values() for managed in items):
            if name and item.ref.name == name and matches_kind(item.ref.kind, kind):
                involved.add((item.ref.kind.name, item.ref.namespace, item.ref.name))
    return involved


def _related_objects(lineage: Lineage, resource: SelectedResource) -> set[InvolvedObject]:
    """Return the source of a unit and all its objects."""
    manifests = lineage.objects.get(resource.id, ())
    involved = {
        (managed.ref.kind.name, managed.ref.namespace, managed.ref.name) for managed in manifests
    }
    source = source_reference(resource.body)
    return involved | ({source} if source else set())


def _is_selected(
    body: JsonObject, involved: set[InvolvedObject], selector: tuple[str, str]
) -> bool:
    """Return whether an Event is about a selected object.

    A named object counts even if no unit manages it, for example a Pod.
    """
    involved_object = get_mapping(body, "involvedObject")
    kind, namespace, name = (
        get_text(involved_object, "kind"),
        get_text(involved_object, "namespace"),
        get_text(involved_object, "name"),
    )
    selected_kind, selected_name = selector
    is_named = (
        bool(selected_name) and name == selected_name and kind.lower() == selected_kind.lower()
    )
    return (kind, namespace, name) in involved or is_named


def _event_row(body: JsonObject, redactor: Redactor) -> EventRow:
    involved_object = get_mapping(body, "involvedObject")
    timestamp = Ms(0)
    with suppress(ValueError):
        timestamp = parse_timestamp(event_time(body))
    return EventRow(
        at=timestamp,
        type=get_text(body, "type"),
        reason=sanitize(get_text(body, "reason")),
        namespace=get_text(involved_object, "namespace"),
        object=sanitize(f"{get_text(involved_object, 'kind')}/{get_text(involved_object, 'name')}"),
        message=sanitize(redactor.redact(get_text(body, "message"))),
        times=max(1, get_int(body, "count")),
    )


async def diagnose_statuses(
    statuses: Sequence[UnitStatus], session: Session
) -> tuple[Evidence, ...]:
    """Return evidence for the unhealthy objects of units, up to the limit shown in full."""
    unhealthy = [
        (status.plan, ClusterRef(object_status.cluster, object_status.ref))
        for status in statuses
        for object_status in status.objects
        if object_status.verdict.health not in {Health.HEALTHY, Health.MISSING}
    ]
    if not unhealthy:
        return ()
    plan, catalog = unhealthy[0][0], session.evaluator.rules.catalog
    redactor, timeouts = Redactor.from_plan(plan), session.raw_world
    context = DiagnosisContext(plan=plan, catalogue=catalog, redactor=redactor, raw_world=timeouts)
    cluster_refs = [cluster_ref for _, cluster_ref in unhealthy[:MAX_FAILURES]]
    return await collect_evidence(session.world, cluster_refs, context)


async def read_unit_logs(
    workspace: Workspace, session: Session, units: Collection[UnitId], tail: int
) -> list[ContainerLog]:
    """Return logs from the failing or pending pods of units, including their hooks."""
    pod_owners = await find_pod_owners(workspace, session, units)
    context = DiagnosisContext(redactor=pod_owners.redactor, raw_world=session.raw_world)
    return await read_logs(session.world, (*pod_owners.hooks, *pod_owners.workloads), context, tail)


class PodOwners(msgspec.Struct, frozen=True):
    """Objects of units that own pods."""

    hooks: tuple[ClusterRef, ...]
    """Hooks, with the generated names of their last run."""
    workloads: tuple[ClusterRef, ...]
    """All other objects with pods."""
    redactor: Redactor
    """Redacts secret values in logs."""


async def find_pod_owners(
    workspace: Workspace, session: Session, units: Collection[UnitId]
) -> PodOwners:
    """Return the objects of units that own pods, by Git."""
    lineages = await read_lineages(workspace, session)
    lineage_of = {unit: lineage for lineage in reversed(lineages) for unit in lineage.units}
    cluster_refs: list[tuple[ClusterRef, bool]] = []
    for unit in units:
        if (lineage := lineage_of.get(unit)) is None:
            continue
        journal = (await read_unit_journal(lineage.units[unit], session)).journal
        started = dict.fromkeys(
            (planned_unit.id for planned_unit in lineage.plan.units), journal.started_at
        )
        cluster_refs += [
            (ClusterRef(step.cluster, item.ref), item.hook is not None)
            for step in complete_hook_names(lineage.plan, started_at=started).steps
            if step.unit == unit
            for item in managed_items(step)
            if item.ref.kind.name in KINDS_WITH_PODS
        ]
    return PodOwners(
        tuple(cluster_ref for cluster_ref, is_hook in cluster_refs if is_hook),
        tuple(cluster_ref for cluster_ref, is_hook in cluster_refs if not is_hook),
        _redactor_for(lineages),
    )
