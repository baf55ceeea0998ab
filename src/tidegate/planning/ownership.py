"""Ownership of live objects that a plan is about to write."""

from __future__ import annotations

from tidegate.clusters.reader import ClusterReader
from tidegate.clusters.session import Session
from tidegate.dialect.argo.options import FAIL_ON_SHARED
from tidegate.dialect.ownership.helm import ownership_problems
from tidegate.dialect.ownership.live import other_owner
from tidegate.errors import Location, PlanError, parse_location, sanitize
from tidegate.model.display import join_limited, join_quoted
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.kinds import CRD, NAMESPACE
from tidegate.model.k8s.objects import ClusterRef, JsonObject, object_body
from tidegate.model.plans.plan import ItemAction, Plan, PlanItem, PlannedUnit, step_items
from tidegate.model.units.semantics import ARGOCD
from tidegate.model.units.unit import UnitId
from tidegate.world.dispatcher import Dispatcher

SHARED_HINT = (
    f"remove the object from one of the two units, or remove `{FAIL_ON_SHARED}` to adopt it"
)
RELEASE_HINT = "remove one of the two, or remove `disableTakeOwnership` to adopt the object"


def find_shared_objects(plan: Plan) -> list[Finding]:
    """Return a finding for each set of units that apply the same objects, and may.

    Argo CD v3.5.1 warns (controller/state.go, `SharedResourceWarning`) and applies them; Flux
    applies them without a warning. CRDs may be shared.
    """
    semantics = {unit.id: unit.policy.semantics for unit in plan.units}
    writers: dict[ClusterRef, dict[UnitId, PlanItem]] = {}
    for step in plan.steps:
        for item in step_items(step):
            is_applied = item.action is ItemAction.APPLY and item.hook is None
            if is_applied and item.ref.kind != CRD and not semantics[step.unit].rejects_shared:
                writers.setdefault(ClusterRef(step.cluster, item.ref), {})[step.unit] = item
    shared: dict[tuple[UnitId, ...], list[PlanItem]] = {}
    for items in writers.values():
        if len(items) > 1:
            shared.setdefault(tuple(sorted(items)), []).append([*items.values()][-1])
    return [
        _shared_finding(units, items, {semantics[unit].name for unit in units})
        for units, items in shared.items()
    ]


def _shared_finding(units: tuple[UnitId, ...], items: list[PlanItem], engines: set[str]) -> Finding:
    names, refs = join_quoted(units), join_limited([item.ref for item in items])
    is_namespace = all(item.ref.kind == NAMESPACE for item in items)
    return Finding(
        code="units.shared",
        severity=Severity.NOTE if is_namespace else Severity.WARNING,
        message=f"{names} apply the same objects: {refs}",
        location=parse_location(items[0].origin) if items[0].origin else None,
        reason="Argo CD reports SharedResourceWarning, and each sync overwrites the other one"
        if engines == {ARGOCD.name}
        else "each unit overwrites the other one whenever it is reconciled",
        fix="remove the objects from all units but one",
        semantics=tuple(sorted(engines)),
    )


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
    items = {item.ref: item for step in steps for item in step_items(step) if item.hook is None}
    errors = []
    for ref, live in (await ClusterReader(world, unit.cluster).get_many(items)).items():
        conflict = _ownership_conflict(object_body(live), unit)
        if conflict is not None:
            location = Location(items[ref].origin or str(ref))
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
    if owner:
        return f"belongs to {owner}", RELEASE_HINT if release else SHARED_HINT
    mismatches = [] if release is None else ownership_problems(body, release)
    if not mismatches:
        return None
    return f"exists and is not part of the release: {sanitize('; '.join(mismatches))}", RELEASE_HINT
