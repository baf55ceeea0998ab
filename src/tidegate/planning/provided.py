"""Objects that units provide, directly or through operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.dialect.units import is_dialect_kind
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.references import list_produced_crds, list_products
from tidegate.knowledge.templates import make_scope
from tidegate.model.k8s.json_fields import get_mappings, get_text, object_kind, object_ref
from tidegate.model.k8s.objects import JsonObject, Kind, Ref, versionless_key
from tidegate.model.plans.manifest import Manifest
from tidegate.model.plans.plan import ItemAction, Plan, PlanItem, Step
from tidegate.model.rollouts.evidence import ProducerRef, StepRelation

CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
WORKLOADS = tuple(Kind("apps", "v1", name) for name in ("Deployment", "StatefulSet", "DaemonSet"))
GroupKind = tuple[str, str]


class ProvidedObjects(msgspec.Struct, frozen=True):
    """The objects that the units of one cluster provide."""

    objects: tuple[tuple[Ref, JsonObject], ...]
    identities: frozenset[tuple[str, str, str, str]]
    """Identities of these objects, and of objects that operators create from them."""
    defined_kinds: frozenset[Kind]
    operator_defined: frozenset[Kind]
    """The defined kinds whose CRDs an operator creates when it sees these objects."""
    workloads: tuple[JsonObject, ...]
    namespaced_kinds: frozenset[GroupKind]
    """Kinds of which an object names a namespace itself."""

    @classmethod
    def from_manifests(
        cls, manifests: Iterable[Manifest], catalog: KindCatalog, bodies: Iterable[JsonObject]
    ) -> ProvidedObjects:
        objects = tuple(
            (manifest.ref, msgspec.json.decode(manifest.body))
            for manifest in manifests
            if manifest.action is not ItemAction.DELETE and not is_dialect_kind(manifest.ref.kind)
        )
        identities = {versionless_key(ref) for ref, _ in objects}
        for ref, body in objects:
            identities |= {
                versionless_key(product) for product in operator_products(ref, body, catalog)
            }
        crds = [body for ref, body in objects if (ref.kind.group, ref.kind.name) == CRD]
        operator_defined = [
            kind
            for ref, body in objects
            for crd in list_produced_crds(catalog.find_row(ref.kind), body, ref.kind)
            for kind in _kinds_of_crd(crd)
        ]
        kinds = {*operator_defined, *(kind for body in crds for kind in _kinds_of_crd(body))}
        return cls(
            objects,
            frozenset(identities),
            frozenset(kinds),
            frozenset(operator_defined),
            tuple(body for ref, body in objects if ref.kind in WORKLOADS),
            frozenset(
                (kind.group, kind.name)
                for body in bodies
                if get_text(body, "metadata", "namespace")
                for kind in (object_kind(body),)
            ),
        )


def operator_products(ref: Ref, body: JsonObject, catalog: KindCatalog) -> Iterator[Ref]:
    """Yield the objects that an operator produces from an object."""
    row = catalog.find_row(ref.kind)
    for product in list_products(row, make_scope(body, ref.kind)) if row else ():
        yield object_ref(product.body)


def _kinds_of_crd(body: JsonObject) -> Iterator[Kind]:
    group, name = get_text(body, "spec", "group"), get_text(body, "spec", "names", "kind")
    for version in get_mappings(body, "spec", "versions"):
        yield Kind(group, get_text(version, "name"), name)


def find_producers(
    plan: Plan, required: Ref, catalogue: KindCatalog, *, consumer_step: str, cluster: str
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


def _produced_by(item: PlanItem, catalogue: KindCatalog) -> set[tuple[str, str, str, str]]:
    """Return the identities of an object and of its operator's products.

    An object that is only awaited or deleted has no body and is produced by something else.
    """
    if not item.body:
        return set()
    kind = item.ref.kind
    produced = {versionless_key(item.ref)}
    row = catalogue.find_row(kind)
    if row is not None:
        scope = make_scope(msgspec.json.decode(item.body), kind)
        produced |= {
            versionless_key(object_ref(product.body)) for product in list_products(row, scope)
        }
    return produced


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
