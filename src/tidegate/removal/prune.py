"""Preview of pruning: objects that were removed from Git, and collateral deletions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.clusters.evaluator import prune_candidate
from tidegate.clusters.inventories import read_inventories
from tidegate.clusters.journal import read_journal
from tidegate.clusters.reader import ClusterReader, run_procedure
from tidegate.clusters.session import Session
from tidegate.engine.cluster.contents import collateral_message, find_collateral
from tidegate.engine.ownership import CONTAINER_KINDS
from tidegate.errors import Location, PlanError
from tidegate.model.k8s.objects import ClusterRef, JsonObject, Ref, object_body, versionless_key
from tidegate.model.plans.plan import ItemAction, Plan, PlannedUnit, step_items
from tidegate.model.units.unit import UnitId
from tidegate.plan.changes.prune import prune_units
from tidegate.world.dispatcher import Dispatcher


async def with_prune_steps(plan: Plan, session: Session) -> Plan:
    """Return the plan with the deletions that a pruning rollout would add."""
    pruning = [unit for unit in plan.units if unit.policy.prune]
    unplanned = await find_unplanned(plan, pruning, session)
    candidates = [
        (unit, [*filter(None, (prune_candidate(body, unit) for body in unplanned[unit.id]))])
        for unit in pruning
    ]
    return prune_units(plan, candidates)


async def find_unplanned(
    plan: Plan, units: Iterable[PlannedUnit], session: Session
) -> dict[UnitId, list[JsonObject]]:
    """Return the live objects of units that are not in Git any more, by unit; hooks are none."""
    units = tuple(units)
    inventories = await read_inventories(units, session)
    unplanned: dict[UnitId, list[JsonObject]] = {}
    for unit in units:
        inventory = inventories.get(unit.id, ())
        refs = await _unplanned_refs(plan, unit, session.world, inventory)
        live_objects = await ClusterReader(session.world, unit.cluster).get_many(refs)
        bodies = map(object_body, live_objects.values())
        unplanned[unit.id] = [body for body in bodies if prune_candidate(body, unit) is not None]
    return unplanned


async def find_collateral_deletions(plan: Plan, session: Session) -> tuple[PlanError, ...]:
    """Return a note for each deletion that also deletes objects of other owners."""
    notes: list[PlanError] = []
    deleted = {
        (step.cluster, *versionless_key(item.ref))
        for step in plan.steps
        for item in step_items(step)
        if item.action is ItemAction.DELETE
    }
    for step in plan.steps:
        refs = [item.ref for item in step_items(step) if item.action is ItemAction.DELETE]
        containers = [ref for ref in refs if ref.kind in CONTAINER_KINDS]
        for live in (await session.reader(step.cluster).get_many(containers)).values():
            cluster_ref, kinds = (
                ClusterRef(step.cluster, live.ref),
                await session.kinds(step.cluster),
            )
            procedure = find_collateral(
                cluster_ref, live, kinds, session.evaluator.find_owner, step.unit.tracking_id
            )
            lost = await run_procedure(procedure, session.world)
            others = [ref for ref in lost if (step.cluster, *versionless_key(ref)) not in deleted]
            if others:
                problem, location = collateral_message(others), Location(str(live.ref))
                notes.append(PlanError("plan.contents", problem, location=location))
    return tuple(notes)


async def _unplanned_refs(
    plan: Plan, unit: PlannedUnit, world: Dispatcher, inventory: Sequence[Ref]
) -> list[Ref]:
    planned = {
        versionless_key(item.ref)
        for step in plan.steps
        if step.cluster == unit.cluster
        for item in step_items(step)
    }
    entries = (await read_journal(unit, world)).journal.entries
    managed = (*(ref for ref, entry in entries.items() if not entry.hook), *inventory)
    return [ref for ref in dict.fromkeys(managed) if versionless_key(ref) not in planned]
