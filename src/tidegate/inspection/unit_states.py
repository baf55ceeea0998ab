"""State of each unit, computed from live objects as its engine computes it.

Argo CD    sync status and worst health of the objects, without hooks
Flux       whether the last reconciliation succeeded
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from tidegate.clusters.session import Session
from tidegate.dialect.argo.status.application import aggregate_health, sync_status
from tidegate.dialect.ownership.tracking import APPLICATION_SET
from tidegate.dialect.units import is_dialect_kind
from tidegate.inspection.diff import Preview, preview_with_preflight
from tidegate.inspection.status import ObjectStatus, judge_objects, read_status
from tidegate.model.k8s.json_fields import object_ref
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.k8s.verdict import Health
from tidegate.model.plans.plan import ItemAction, Plan, PlannedUnit, step_items
from tidegate.model.rollouts.event import Event, EventType, RolloutOutcome
from tidegate.model.rollouts.progress import ObjectProgress, UnitPhase, UnitProgress
from tidegate.model.times import Ms
from tidegate.model.units.policy import Tracking
from tidegate.model.units.semantics import ChildGates
from tidegate.model.units.unit import UnitId
from tidegate.model.views.unit_states import Ready, SyncStatus, UnitState
from tidegate.planning.plan import PlanResult
from tidegate.removal.prune import find_unplanned
from tidegate.workspace.workspace import Workspace

PASSED, FAILED = RolloutOutcome.PASSED.value, RolloutOutcome.FAILED.value
OPERATIONS = {PASSED: "Succeeded", FAILED: "Failed"}
"""Phase of an operation by the result of its unit; `Running` otherwise."""
READY = {PASSED: Ready.TRUE, FAILED: Ready.FALSE}


class _LastOperation(msgspec.Struct):
    """What the events of a rollout say about one unit."""

    result: str = ""
    retries: int = 0
    is_started: bool = False


async def preview_with_states(
    session: Session, workspace: Workspace
) -> tuple[Workspace, list[Preview]]:
    """Return the workspace and a preview of each of its alternatives, with the states of units.

    In a simulated cluster units have no state yet.
    """
    previews: list[Preview] = []
    for alternative in workspace.split_alternatives():
        compared = await preview_with_preflight(alternative.unit_trees, session)
        preview = compared.preview
        if session.targets.simulation is None:
            status = await judge_objects(
                preview.plan, preview.differences, compared.live_objects, session
            )
            unknown = preview.unreadable_units
            states = await _build_states(preview.plan, status.objects, session, (), unknown)
            preview = msgspec.structs.replace(preview, unit_states=states)
        previews.append(preview)
    return workspace, previews


async def read_unit_states(
    plan_result: PlanResult,
    session: Session,
    events: Sequence[Event],
    unknown: Collection[UnitId],
) -> tuple[UnitState, ...]:
    """Return the states of all units of a plan after a rollout with these events.

    `unknown`: units whose manifests are not known.
    """
    statuses = await read_status(plan_result, session)
    return await _build_states(plan_result.plan, statuses, session, events, unknown)


async def _build_states(
    plan: Plan,
    statuses: Iterable[ObjectStatus],
    session: Session,
    events: Sequence[Event],
    unknown: Collection[UnitId],
) -> tuple[UnitState, ...]:
    """Return the states of all units, in the order of the plan.

    Whether a Flux unit is ready depends on its last reconciliation: without events it has no state.
    """
    objects: dict[UnitId, list[ObjectStatus]] = {}
    created = _created_namespaces(plan)
    for status in statuses:
        if status.unit is not None and (status.unit, status.ref) not in created:
            objects.setdefault(status.unit, []).append(status)
    now, operations = session.world.now(), _last_operations(events, plan.units)
    applications = [unit for unit in plan.units if unit.policy.tracking is Tracking.ARGO]
    unplanned = await find_unplanned(plan, applications, session)
    health: dict[UnitId, Health] = {}
    states: dict[UnitId, UnitState] = {}
    # A parent shows the health of its children, which come later in the plan.
    for unit in reversed(plan.units):
        progress = _unit_progress(
            unit, objects.get(unit.id, ()), unplanned.get(unit.id, ()), health, now
        )
        progress = msgspec.structs.replace(progress, is_valid=unit.id not in unknown)
        health[unit.id] = aggregate_health(progress)[0]
        if events or unit.policy.tracking is not Tracking.FLUX:
            states[unit.id] = _unit_state(unit, progress, health[unit.id], operations)
    return tuple(states[unit.id] for unit in plan.units if unit.id in states)


def _created_namespaces(plan: Plan) -> set[tuple[UnitId, Ref]]:
    """Return the namespaces of `CreateNamespace=true`, which belong to no Application."""
    return {
        (step.unit, item.ref)
        for step in plan.steps
        for item in step_items(step)
        if item.action is ItemAction.CREATE
    }


def _last_operations(
    events: Sequence[Event], units: Sequence[PlannedUnit]
) -> dict[UnitId, _LastOperation]:
    """Return the last operations of units. No event is about the writes of child units."""
    operations: dict[UnitId, _LastOperation] = {}
    for event in events:
        if event.unit is None:
            continue
        operation = operations.setdefault(event.unit, _LastOperation())
        match event.type:
            case EventType.STEP_APPLYING:
                operation.is_started = True
            case EventType.RETRY_SCHEDULED:
                operation.retries += 1
            case EventType.UNIT_FINISHED:
                operation.result = event.reason
            case _:
                pass
    for unit in reversed(units):
        is_started = unit.id in operations and operations[unit.id].is_started
        if is_started and unit.parent in operations:
            operations[unit.parent].is_started = True
    return operations


def _unit_state(
    unit: PlannedUnit,
    progress: UnitProgress,
    health: Health,
    operations: Mapping[UnitId, _LastOperation],
) -> UnitState:
    operation = operations.get(unit.id, _LastOperation())
    if unit.policy.tracking is Tracking.FLUX:
        ready = READY.get(operation.result, Ready.UNKNOWN)
        return UnitState(unit=unit.id, ready=ready, retries=operation.retries)
    if unit.id.kind == APPLICATION_SET:  # it has neither a sync status nor an operation
        return UnitState(unit=unit.id, health=health.value)
    phase = OPERATIONS.get(operation.result, "Running")
    return UnitState(
        unit=unit.id,
        sync=SyncStatus(sync_status(progress)),
        health=health.value,
        operation=phase if operation.is_started else "",
        retries=operation.retries,
    )


def _unit_progress(
    unit: PlannedUnit,
    objects: Sequence[ObjectStatus],
    unplanned: Sequence[JsonObject],
    child_health: Mapping[UnitId, Health],
    now: Ms,
) -> UnitProgress:
    """Return the objects of a unit as its status is computed from them.

    Argo CD evaluates a child Application only with a health check for Application.
    """
    gates_children = unit.policy.semantics.child_gates is not ChildGates.NEVER

    def counted_health(status: ObjectStatus) -> Health | None:
        ref, cluster = status.ref, status.cluster
        child = UnitId(ref.kind.name, cluster, ref.namespace, ref.name)
        if child in child_health and is_dialect_kind(ref.kind):
            return child_health[child] if gates_children else None
        is_known = status.verdict.is_checked or unit.policy.semantics.uses_generic_health
        return status.verdict.health if is_known else None

    return UnitProgress(
        unit=unit.id,
        phase=UnitPhase.FINISHED,
        now=now,
        started_at=now,
        objects=(
            *map(_unplanned_progress, unplanned),
            *(
                ObjectProgress(
                    ref=status.ref,
                    wave=status.wave,
                    is_desired=not status.requires_pruning,
                    in_sync=status.is_synced,
                    is_live=bool(status.body),
                    health=counted_health(status),
                    body=status.body,
                )
                for status in objects
            ),
        ),
    )


def _unplanned_progress(body: JsonObject) -> ObjectProgress:
    """Return an object that is not in Git any more, and was not pruned."""
    return ObjectProgress(
        ref=object_ref(body), is_desired=False, is_live=True, body=msgspec.json.encode(body)
    )
