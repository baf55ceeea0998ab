"""A plan as programs read it: what becomes of each object, in which step of which unit, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.model.change import Difference, FieldChange
from tidegate.model.objects import Spot
from tidegate.model.plan import (
    AWAITED,
    Item,
    Plan,
    PlannedUnit,
    Step,
    is_confidential,
    items_of,
    public_digest,
)
from tidegate.model.unit import UnitId
from tidegate.report.places import seen_text
from tidegate.report.rollout.documents import VERSION
from tidegate.report.rollout.names import name_step

NONE = msgspec.Raw(b"null")


class ObjectOut(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One object. `object` is its text, and null where something in it is secret."""

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


class StepOut(msgspec.Struct, frozen=True, kw_only=True):
    """A step by its id and by its name among those of its unit; `after`: steps it waits for."""

    id: str
    unit: str
    name: str
    after: tuple[str, ...]


class UnitOut(msgspec.Struct, frozen=True, kw_only=True):
    """`user`: whose rights are used, if not one's own. `brought_by`: the unit that brings it."""

    unit: str
    cluster: str
    brought_by: str = msgspec.field(name="broughtBy")
    manager: str
    prunes: bool
    user: str


class PlanOut(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document. `refused`: how many objects the cluster would not take.

    `unknown`: units of which nothing can be said.
    """

    kind: str = "Plan"
    version: int = VERSION
    digest: str
    target: tuple[str, ...]
    units: tuple[UnitOut, ...]
    steps: tuple[StepOut, ...]
    objects: tuple[ObjectOut, ...]
    summary: dict[str, int]
    refused: int
    unknown: tuple[str, ...]


def plan_out(
    plan: Plan,
    differences: Mapping[Spot, Difference],
    refused: int,
    target: Iterable[str],
    unknown: Iterable[UnitId] = (),
) -> PlanOut:
    """The document of a plan, without a secret in it."""
    counts: dict[str, int] = {}
    for difference in differences.values():
        counts[difference.deed] = counts.get(difference.deed, 0) + 1
    after: dict[str, dict[str, None]] = {}
    for edge in plan.edges:
        after.setdefault(edge.after, {})[edge.before] = None
    return PlanOut(
        digest=public_digest(plan),
        target=tuple(target),
        units=tuple(map(_unit, plan.units)),
        steps=tuple(_step(step, after.get(step.id, ())) for step in plan.steps),
        objects=tuple(
            _object(step, item, differences.get(Spot(step.cluster, item.ref)))
            for step in plan.steps
            for item in items_of(step)
        ),
        summary=counts,
        refused=refused,
        unknown=tuple(map(str, unknown)),
    )


def _unit(unit: PlannedUnit) -> UnitOut:
    identity = unit.policy.identity
    return UnitOut(
        unit=str(unit.id),
        cluster=unit.cluster,
        brought_by=str(unit.parent) if unit.parent else "",
        manager=unit.policy.manager,
        prunes=unit.policy.prunes,
        user=identity.user if identity else "",
    )


def _step(step: Step, after: Iterable[str]) -> StepOut:
    unit, name = str(step.unit), name_step(step)
    return StepOut(id=step.id, unit=unit, name=name, after=tuple(sorted(after)))


def _object(step: Step, item: Item, difference: Difference | None) -> ObjectOut:
    ref = item.ref
    operation = "await" if item.deed in AWAITED else difference.deed if difference else "delete"
    is_open = bool(item.body) and not is_confidential(item)
    return ObjectOut(
        unit=str(step.unit),
        step=step.id,
        cluster=step.cluster,
        api_version=ref.kind.api_version,
        kind=ref.kind.name,
        namespace=ref.namespace,
        name=ref.name,
        operation=str(operation),
        hook=item.hook is not None,
        where=seen_text(item.origin),
        fields=difference.fields if difference else (),
        because=difference.because if difference else (),
        object=msgspec.Raw(item.body) if is_open else NONE,
    )
