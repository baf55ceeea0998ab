"""Ownership of live objects that a plan is about to write."""

from __future__ import annotations

from tidegate.clusters.reader import get_objects, object_body
from tidegate.clusters.session import Session
from tidegate.dialect.argo.options import FAIL_ON_SHARED
from tidegate.dialect.ownership.helm import ownership_problems
from tidegate.dialect.ownership.live import other_owner
from tidegate.errors import Location, PlanError, sanitize
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.plan import Plan, PlanItem, PlannedUnit, step_items
from tidegate.world.dispatcher import Dispatcher

SHARED_HINT = (
    f"remove the object from one of the two units, or remove `{FAIL_ON_SHARED}` to adopt it"
)
RELEASE_HINT = "remove one of the two, or remove `disableTakeOwnership` to adopt the object"


async def reject_shared(plan: Plan, session: Session) -> None:
    """Raise PlanError, or a group of them, for live objects that belong to another unit.

    Units without `FailOnSharedResource` take such objects over.
    """
    strict = [unit for unit in plan.units if unit.policy.fail_on_shared_resource]
    errors = [error for unit in strict for error in await _shared_errors(unit, plan, session.world)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("several objects belong to other units", errors)


async def _shared_errors(unit: PlannedUnit, plan: Plan, world: Dispatcher) -> list[PlanError]:
    steps = (step for step in plan.steps if step.unit == unit.id)
    items: dict[tuple[str, ...], PlanItem] = {
        (item.ref.kind.name, item.ref.kind.group, item.ref.namespace, item.ref.name): item
        for step in steps
        for item in step_items(step)
        if item.hook is None
    }
    errors = []
    for live in await get_objects(
        world, (planned_item.ref for planned_item in items.values()), cluster=unit.cluster
    ):
        ref = live.ref
        conflict = _ownership_conflict(object_body(live), unit)
        if conflict is not None:
            item = items[ref.kind.name, ref.kind.group, ref.namespace, ref.name]
            location = Location(item.origin or str(ref))
            problem, hint = conflict
            errors.append(
                PlanError("plan.shared", f"{ref} {problem}", location=location, hint=hint)
            )
    return errors


def _ownership_conflict(body: JsonObject, unit: PlannedUnit) -> tuple[str, str] | None:
    """Return why a unit may not adopt an object, and a fix; for releases, with Helm's message.

    None if it may.
    """
    owner, release = other_owner(body, unit), unit.policy.release
    if owner is not None:
        return f"belongs to unit `{sanitize(owner)}`", RELEASE_HINT if release else SHARED_HINT
    mismatches = [] if release is None else ownership_problems(body, release)
    if not mismatches:
        return None
    return f"exists and is not part of the release: {sanitize('; '.join(mismatches))}", RELEASE_HINT
