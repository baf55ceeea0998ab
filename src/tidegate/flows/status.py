"""Status of units and their objects: compared with Git and judged for health."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.dialect.units import is_dialect_kind
from tidegate.flows.discover import UnitTree
from tidegate.flows.preview import preview_against_live
from tidegate.flows.session import Session
from tidegate.model.change import DiffAction
from tidegate.model.objects import ClusterRef, JsonObject, Ref
from tidegate.model.plan import Plan, PlannedUnit, Step, managed_items
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Health, Verdict
from tidegate.world.ask import send_requests
from tidegate.world.calls import RunWorker

MISSING = Verdict(Health.MISSING, "Missing", "it is not there")
NO_OBJECTS = Verdict(Health.HEALTHY, "Empty", "it brings nothing")
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


class PlanStatus(msgspec.Struct, frozen=True):
    """A plan with its pending deletions, and the status of its objects in plan order."""

    plan: Plan
    objects: list[ObjectStatus]


async def read_status(unit_trees: Sequence[UnitTree], session: Session) -> list[ObjectStatus]:
    """Return the status of all objects of the units, in plan order."""
    return (await read_plan_status(unit_trees, session)).objects


async def read_plan_status(unit_trees: Sequence[UnitTree], session: Session) -> PlanStatus:
    """Return the status of all objects with the plan, which also has the hooks."""
    preview, live_objects = await preview_against_live(unit_trees, session)
    verdicts = await _judge_all(preview.plan, live_objects, session)
    _judge_units(preview.plan, verdicts)
    objects = [
        ObjectStatus(
            cluster_ref.ref,
            step.wave,
            preview.differences[cluster_ref].action is DiffAction.KEEP,
            verdicts.get(cluster_ref, MISSING),
            cluster_ref.cluster,
            step.unit,
            preview.differences[cluster_ref].action is DiffAction.PRUNE,
        )
        for step in preview.plan.steps
        for cluster_ref in _refs_without_hooks(step)
    ]
    return PlanStatus(preview.plan, objects)


async def _judge_all(
    plan: Plan, live_objects: dict[ClusterRef, bytes], session: Session
) -> dict[ClusterRef, Verdict]:
    """Return a verdict for each live object."""
    units = {unit.id: unit for unit in plan.units}
    objects = (
        (cluster_ref, units[step.unit], msgspec.json.decode(live_objects[cluster_ref]))
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
    # What a unit brings is planned behind it, so that the last ones are known first.
    for step in reversed(plan.steps):
        for cluster_ref in _refs_without_hooks(step):
            ref = cluster_ref.ref
            name = UnitId(ref.kind.name, step.cluster, ref.namespace, ref.name)
            if name in units and is_dialect_kind(ref.kind) and cluster_ref in verdicts:
                worst = worst_verdict(
                    verdicts.get(inner, MISSING) for inner in refs_by_unit.get(name, ())
                )
                verdicts[cluster_ref] = msgspec.structs.replace(
                    worst, message="what it brings is so"
                )


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict, or `NO_OBJECTS`."""
    return max(verdicts, key=lambda verdict: HEALTH_ORDER.index(verdict.health), default=NO_OBJECTS)


def _refs_without_hooks(step: Step) -> list[ClusterRef]:
    """Return the objects of a step that are not hooks."""
    return [ClusterRef(step.cluster, item.ref) for item in managed_items(step) if item.hook is None]
