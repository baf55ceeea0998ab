"""Who in a plan makes an object: the plan itself, or an operator from what the plan holds."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import products_of
from tidegate.knowledge.templates import scope_of
from tidegate.model.objects import Json, Kind, Ref, versionless_key
from tidegate.model.plan import ItemAction, Plan, PlanItem, Step
from tidegate.model.reading import get_text
from tidegate.report.rollout.evidence import ProducerRef, StepRelation


def find_producers(
    plan: Plan, required: Ref, catalogue: KnownRows, *, consumer_step: str, cluster: str
) -> Iterator[ProducerRef]:
    """Yield the plan's producers of an object, in plan order.

    A producer is the object itself, or one from which an operator makes it. `consumer_step`:
    the step that needs the object.
    """
    for step in (candidate for candidate in plan.steps if candidate.cluster == cluster):
        for item in (item for batch in step.batches for item in batch):
            if versionless_key(required) in _produced_by(item, catalogue):
                yield ProducerRef(
                    ref=item.ref,
                    step=step.id,
                    relation=_step_relation(plan, consumer_step, step.id),
                )


def find_step(plan: Plan, ref: Ref, cluster: str) -> Step | None:
    steps = (step for step in plan.steps if step.cluster == cluster)
    return next((step for step in steps if find_item(step, ref) is not None), None)


def find_item(step: Step, ref: Ref) -> PlanItem | None:
    return next((item for batch in step.batches for item in batch if item.ref == ref), None)


def _produced_by(item: PlanItem, catalogue: KnownRows) -> set[tuple[str, str, str, str]]:
    """Return the identities of an object and of its operator's products."""
    if item.deed is ItemAction.DELETE:
        return set()
    kind = item.ref.kind
    produced = {versionless_key(item.ref)}
    row = catalogue.row_of(kind)
    if row is not None:
        scope = scope_of(msgspec.json.decode(item.body), kind)
        produced |= {
            versionless_key(_body_ref(product.body)) for product in products_of(row, scope)
        }
    return produced


def _body_ref(body: dict[str, Json]) -> Ref:
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    return Ref(kind, get_text(body, "metadata", "namespace"), get_text(body, "metadata", "name"))


def _step_relation(plan: Plan, consumer_step: str, producer_step: str) -> StepRelation:
    if consumer_step == producer_step:
        return StepRelation.SAME_STEP
    if producer_step in _steps_from(plan, consumer_step):
        return StepRelation.AFTER
    return (
        StepRelation.BEFORE
        if consumer_step in _steps_from(plan, producer_step)
        else StepRelation.PARALLEL
    )


def _steps_from(plan: Plan, first: str) -> set[str]:
    """Return a step and all steps that start after it. The plan's steps are in edge order."""
    predecessors: dict[str, set[str]] = {}
    for edge in plan.edges:
        predecessors.setdefault(edge.after, set()).add(edge.before)
    reached = {first}
    for step in plan.steps:
        if predecessors.get(step.id, set()) & reached:
            reached.add(step.id)
    return reached
