"""Resource tree of an Application: by phase and wave, with hooks and owned objects.

Whether a hook has run is read from the first of these that knows:

the hook itself      while it exists
the unit resource    result of the last operation
the journal          during a rollout, and after the current revision was rolled out
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tidegate.clusters.journal import read_journal
from tidegate.clusters.session import Session
from tidegate.inspection.status import UnitStatus, judge_bodies
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.kinds import JOB, POD, REPLICA_SET
from tidegate.model.k8s.objects import ClusterRef, JsonObject, object_body
from tidegate.model.k8s.pods import OwnerKey, owner_key, owner_keys
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.plans.plan import PlanItem, PlannedUnit, Step, managed_items
from tidegate.model.rollouts.journal import Journal
from tidegate.model.rollouts.names import phase_title
from tidegate.model.views.resources import ResourceRow
from tidegate.plan.build.hook_names import complete_hook_names
from tidegate.world.requests import Selection

OWNED_KINDS = (
    REPLICA_SET,
    JOB,
    POD,
)
"""Kinds that controllers create from objects in Git and that users look for."""
HOOK_RESULTS = {Health.HEALTHY: "Succeeded", Health.DEGRADED: "Failed"}
SYNC, SYNC_FAIL = "Sync", "SyncFail"


class Resources(msgspec.Struct, frozen=True):
    """The resource tree of an Application."""

    rows: tuple[ResourceRow, ...]
    unreadable: tuple[str, ...] = ()
    """Kinds and namespaces that may not be listed; their objects are left out."""


class _HookHistory(msgspec.Struct, frozen=True):
    """Known results of the hooks of one unit."""

    unit: PlannedUnit
    journal: Journal
    operation_results: Mapping[tuple[str, OwnerKey], JsonObject]
    verdicts: Mapping[ClusterRef, Verdict]

    def row(self, step: Step, item: PlanItem) -> ResourceRow:
        hook = phase_title(step.hook_event, step.phase)
        verdict = self.verdicts.get(ClusterRef(step.cluster, item.ref))
        result = self.operation_results.get((hook, owner_key(item.ref)), {})
        row = ResourceRow(item.ref, step.wave, verdict, phase=hook, hook=hook)
        if verdict is not None:
            return replace(row, hook_result=HOOK_RESULTS.get(verdict.health, "Running"))
        if result:
            return replace(
                row, hook_result=get_text(result, "hookPhase"), detail=get_text(result, "message")
            )
        entry = self.journal.entries.get(item.ref)
        has_run = entry is not None and item.digest in entry.ran
        is_complete = self.journal.completed_digest == self.unit.digest and hook != SYNC_FAIL
        if has_run or (is_complete and bool(self.journal.completed_digest)):
            return replace(row, hook_result="Succeeded")
        return replace(row, detail="not run")


def object_rows(status: UnitStatus) -> tuple[ResourceRow, ...]:
    """Return the objects of an Application without hooks, in plan order; no cluster is read."""
    return tuple(_object_rows_by_ref(status).values())


async def read_resources(status: UnitStatus, session: Session) -> Resources:
    """Return the whole resource tree of an Application, in plan order."""
    unit = next(
        (planned_unit for planned_unit in status.plan.units if planned_unit.id == status.unit.id),
        None,
    )
    if unit is None:
        return Resources(())
    journal = (await read_journal(unit, session.world)).journal
    started = dict.fromkeys(
        (planned_unit.id for planned_unit in status.plan.units), journal.started_at
    )
    plan = complete_hook_names(status.plan, started_at=started)
    steps = [step for step in plan.steps if step.unit == unit.id]
    hooks = _HookHistory(
        unit, journal, _hook_results(status.live_resource), await _judge_hooks(unit, steps, session)
    )
    rows_by_ref = _object_rows_by_ref(status)
    rows = [
        hooks.row(step, item)
        if item.hook is not None
        else rows_by_ref[ClusterRef(step.cluster, item.ref)]
        for step in steps
        for item in managed_items(step)
    ]
    owned, unreadable = await _find_owned(unit, rows, session)
    return Resources(tuple(_with_owned(row, owned) for row in rows), unreadable)


def _object_rows_by_ref(status: UnitStatus) -> dict[ClusterRef, ResourceRow]:
    phases = {
        ClusterRef(step.cluster, item.ref): phase_title(step.hook_event, step.phase)
        for step in status.plan.steps
        if step.unit == status.unit.id
        for item in managed_items(step)
        if item.hook is None
    }
    return {
        ClusterRef(object_status.cluster, object_status.ref): ResourceRow(
            object_status.ref,
            object_status.wave,
            object_status.verdict,
            is_synced=object_status.is_synced,
            requires_pruning=object_status.requires_pruning,
            phase=phases.get(ClusterRef(object_status.cluster, object_status.ref), SYNC),
        )
        for object_status in status.objects
    }


def _hook_results(unit_resource: JsonObject) -> dict[tuple[str, OwnerKey], JsonObject]:
    """Return the hook results of the last operation, by phase and owner key."""
    results = get_mappings(unit_resource, "status", "operationState", "syncResult", "resources")
    return {
        (
            get_text(result, "hookType"),
            (get_text(result, "kind"), get_text(result, "namespace"), get_text(result, "name")),
        ): result
        for result in results
        if get_text(result, "hookType")
    }


async def _judge_hooks(
    unit: PlannedUnit, steps: Iterable[Step], session: Session
) -> dict[ClusterRef, Verdict]:
    """Return the verdicts of the hooks that exist."""
    hooks: list[tuple[ClusterRef, PlannedUnit, JsonObject]] = []
    for step in steps:
        refs = [item.ref for item in managed_items(step) if item.hook is not None]
        live_objects = await session.reader(step.cluster).get_many(refs)
        hooks += [
            (ClusterRef(step.cluster, ref), unit, object_body(live))
            for ref, live in live_objects.items()
        ]
    return await judge_bodies(hooks, session)


async def _find_owned(
    unit: PlannedUnit, rows: Sequence[ResourceRow], session: Session
) -> tuple[dict[OwnerKey, list[ResourceRow]], tuple[str, ...]]:
    """Return the controller-created objects in the namespaces of the rows, by owner.

    The second value lists the kinds and namespaces that could not be listed.
    """
    namespaces = dict.fromkeys(row.ref.namespace for row in rows if row.ref.namespace)
    selections = [Selection(kind, namespace) for namespace in namespaces for kind in OWNED_KINDS]
    listing = await session.reader(unit.cluster).list_each(selections)
    live_objects = listing.items
    unreadable = [
        f"{selection.kind.name}s in `{selection.namespace}`" for selection in listing.errors
    ]
    bodies = {ClusterRef(unit.cluster, live.ref): object_body(live) for live in live_objects}
    objects = ((cluster_ref, unit, body) for cluster_ref, body in bodies.items())
    verdicts = await judge_bodies(objects, session)
    owned: dict[OwnerKey, list[ResourceRow]] = {}
    for live in sorted(live_objects, key=lambda listed: listed.ref):
        cluster_ref = ClusterRef(unit.cluster, live.ref)
        for key in owner_keys(bodies[cluster_ref]):
            owned.setdefault(key, []).append(ResourceRow(live.ref, None, verdicts[cluster_ref]))
    return owned, tuple(unreadable)


def _with_owned(row: ResourceRow, owned_rows: Mapping[OwnerKey, list[ResourceRow]]) -> ResourceRow:
    owned = owned_rows.get(owner_key(row.ref), ())
    return (
        replace(row, owned=tuple(_with_owned(child, owned_rows) for child in owned))
        if owned
        else row
    )
