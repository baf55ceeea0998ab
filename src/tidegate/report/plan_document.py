"""Plans and deletions as rows for people and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.model.change import Difference, FieldChange
from tidegate.model.objects import ClusterRef
from tidegate.model.plan import (
    AWAIT_ACTIONS,
    Plan,
    PlanItem,
    PlannedUnit,
    Step,
    is_confidential,
    public_digest,
    step_items,
)
from tidegate.model.unit import UnitId
from tidegate.report.places import location_text
from tidegate.report.rollout.documents import JSON_VERSION
from tidegate.report.rollout.names import step_name

JSON_NULL = msgspec.Raw(b"null")


class ObjectDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """JSON document of an object of a plan."""

    unit: str
    step: str
    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str
    operation: str
    hook: bool
    where: str
    fields: tuple[FieldChange, ...]
    because: tuple[str, ...]
    object: msgspec.Raw
    """The manifest; null where it contains a secret."""


class StepDocument(msgspec.Struct, frozen=True, kw_only=True):
    """JSON document of a step."""

    id: str
    unit: str
    name: str
    """Name of the step within its unit."""
    after: tuple[str, ...]
    """Steps that it waits for."""


class UnitDocument(msgspec.Struct, frozen=True, kw_only=True):
    """JSON document of a unit."""

    unit: str
    cluster: str
    brought_by: str = msgspec.field(name="broughtBy")
    """The parent unit."""
    manager: str
    prunes: bool
    user: str
    """User to impersonate; empty for the caller."""


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True):
    """JSON document of a plan."""

    kind: str = "Plan"
    version: int = JSON_VERSION
    digest: str
    target: tuple[str, ...]
    units: tuple[UnitDocument, ...]
    steps: tuple[StepDocument, ...]
    objects: tuple[ObjectDocument, ...]
    summary: dict[str, int]
    refused: int
    """Number of objects that the cluster would refuse."""
    unknown: tuple[str, ...]
    """Units whose objects are not known."""


def plan_document(
    plan: Plan,
    differences: Mapping[ClusterRef, Difference],
    refused_count: int,
    target: Iterable[str],
    unknown: Iterable[UnitId] = (),
) -> PlanDocument:
    """Return the JSON document of a plan, without secrets."""
    counts: dict[str, int] = {}
    for difference in differences.values():
        counts[difference.action] = counts.get(difference.action, 0) + 1
    predecessors: dict[str, dict[str, None]] = {}
    for edge in plan.edges:
        predecessors.setdefault(edge.after, {})[edge.before] = None
    return PlanDocument(
        digest=public_digest(plan),
        target=tuple(target),
        units=tuple(map(_unit_document, plan.units)),
        steps=tuple(_step_document(step, predecessors.get(step.id, ())) for step in plan.steps),
        objects=tuple(
            _object_document(step, item, differences.get(ClusterRef(step.cluster, item.ref)))
            for step in plan.steps
            for item in step_items(step)
        ),
        summary=counts,
        refused=refused_count,
        unknown=tuple(map(str, unknown)),
    )


def _unit_document(unit: PlannedUnit) -> UnitDocument:
    identity = unit.policy.identity
    return UnitDocument(
        unit=str(unit.id),
        cluster=unit.cluster,
        brought_by=str(unit.parent) if unit.parent else "",
        manager=unit.policy.manager,
        prunes=unit.policy.prunes,
        user=identity.user if identity else "",
    )


def _step_document(step: Step, predecessors: Iterable[str]) -> StepDocument:
    unit, name = str(step.unit), step_name(step)
    return StepDocument(id=step.id, unit=unit, name=name, after=tuple(sorted(predecessors)))


def _object_document(step: Step, item: PlanItem, difference: Difference | None) -> ObjectDocument:
    ref = item.ref
    operation = (
        "await" if item.deed in AWAIT_ACTIONS else difference.action if difference else "delete"
    )
    is_public = bool(item.body) and not is_confidential(item)
    return ObjectDocument(
        unit=str(step.unit),
        step=step.id,
        cluster=step.cluster,
        api_version=ref.kind.api_version,
        kind=ref.kind.name,
        namespace=ref.namespace,
        name=ref.name,
        operation=str(operation),
        hook=item.hook is not None,
        where=location_text(item.origin),
        fields=difference.fields if difference else (),
        because=difference.immutable_fields if difference else (),
        object=msgspec.Raw(item.body) if is_public else JSON_NULL,
    )
