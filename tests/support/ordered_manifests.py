"""Manifests, units and plans of which only the order matters, and how tests speak of them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tests.support.builders import DEFAULT_POLICY, make_unit_id
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import HookPolicy, Plan, PlanItem, PlannedUnit, Step
from tidegate.model.times import Ms
from tidegate.model.units.policy import ObjectOptions, Policy
from tidegate.model.units.unit import Dependency, Destination, Unit
from tidegate.plan.build.build import build_plan
from tidegate.plan.changes.prune import PruneCandidate, prune_units

DEFAULT = (HookPolicy.BEFORE_CREATION,)
CRD = "apiextensions.k8s.io/v1 CustomResourceDefinition"
CLUSTER_WIDE = frozenset({"Namespace", "CustomResourceDefinition", "ClusterRole", "StorageClass"})
SHOP = PlannedUnit(id=make_unit_id("shop"))


def kind_of(text: str) -> Kind:
    """`apps/v1 Deployment`, or just `Service` for what is in the core group."""
    api_version, _, word = text.rpartition(" ")
    return Kind.of(api_version or "v1", word)


def ref_of(kind: str, name: str, namespace: str = "default") -> Ref:
    known = kind_of(kind)
    return Ref(known, "" if known.name in CLUSTER_WIDE else namespace, name)


def a_thing(
    kind: str,
    name: str,
    *,
    wave: int = 0,
    phase: Phase = Phase.SYNC,
    namespace: str = "default",
    **parts: Json,
) -> Manifest:
    ref = ref_of(kind, name, namespace)
    body: JsonObject = {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "metadata": {"name": name, **({"namespace": namespace} if ref.namespace else {})},
        **parts,
    }
    return Manifest(ref=ref, body=msgspec.json.encode(body), wave=wave, phase=phase)


def a_hook(
    kind: str,
    name: str,
    phase: Phase,
    *,
    wave: int = 0,
    policies: tuple[HookPolicy, ...] = DEFAULT,
) -> Manifest:
    return msgspec.structs.replace(
        a_thing(kind, name, wave=wave, phase=phase), hook_policies=policies
    )


def a_nameless_hook(start: str, phase: Phase) -> Manifest:
    """A hook that has only the beginning of a name."""
    named = a_hook("v1 Pod", start, phase)
    body: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": start}}
    return msgspec.structs.replace(named, body=msgspec.json.encode(body))


def a_definition(name: str, group: str, kind: str, *, wave: int = 0) -> Manifest:
    return msgspec.structs.replace(a_thing(CRD, name, wave=wave), defined_kind=(group, kind))


def no_budget(_: JsonObject) -> Ms | None:
    return None


def a_unit_of(
    *manifests: Manifest,
    name: str = "shop",
    after: tuple[str, ...] = (),
    policy: Policy = DEFAULT_POLICY,
    namespace: str = "",
) -> Manifests:
    unit = Unit(
        id=make_unit_id(name),
        destination=Destination(namespace=namespace),
        policy=policy,
        dependencies=tuple(Dependency(unit=make_unit_id(item)) for item in after),
    )
    return Manifests(unit=unit, manifests=manifests)


def plan_of(*items: Manifest | Manifests) -> Plan:
    """A plan of units, or of one unit with these manifests."""
    units = [item for item in items if isinstance(item, Manifests)]
    manifests = [item for item in items if isinstance(item, Manifest)]
    return build_plan(
        [*units, a_unit_of(*manifests)] if manifests else units, readiness_timeout=no_budget
    )


def stale(
    kind: str, name: str, wave: int = 0, handling: ObjectOptions | None = None
) -> PruneCandidate:
    return PruneCandidate(ref_of(kind, name), wave, handling or ObjectOptions())


def add_prunes(plan: Plan, unit: PlannedUnit, going: Iterable[PruneCandidate]) -> Plan:
    """The plan with the deletions of one unit."""
    return prune_units(plan, [(unit, tuple(going))])


def names_of(step: Step) -> list[list[str]]:
    """The names of a step's objects, batch by batch.

    What is deleted has a minus, and a question mark if a user must confirm.
    """
    return [[_name(item) for item in batch] for batch in step.batches]


def results_by_name(plan: Plan) -> dict[str, list[list[str]]]:
    return {step.id: names_of(step) for step in plan.steps}


def links_of(plan: Plan) -> set[tuple[str, str, str]]:
    return {(edge.before, edge.after, str(edge.reason)) for edge in plan.edges}


def step_of(plan: Plan, name: str) -> Step:
    return next(step for step in plan.steps if step.id == name)


def _name(item: PlanItem) -> str:
    name = f"{item.ref.name}?" if item.requires_confirmation else item.ref.name
    return f"-{name}" if item.action == "delete" else name
