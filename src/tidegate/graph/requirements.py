"""Requirements of an object and their providers, from its kind, fields, texts, annotations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tidegate.graph.declared import (
    AnnotatedDependency,
    ParseProblem,
    change_groups,
    parse_change_rules,
    parse_dependencies,
)
from tidegate.graph.hosts import ServiceCall, find_service_calls
from tidegate.graph.inputs import GraphInputs
from tidegate.graph.providers import (
    NAMESPACE_KIND,
    SERVICE_KIND,
    STORAGE_CLASS_KIND,
    Provider,
    ProviderIndex,
)
from tidegate.knowledge.named_objects import PodTemplate, Reference
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import FieldPath, JsonObject, Kind, Ref
from tidegate.model.operators.rows import Effect, KindRow, RequiredState
from tidegate.model.plans.graph import DEFAULT_CLASS, EdgeKind
from tidegate.model.units.unit import Strength

CRD_GROUP = "apiextensions.k8s.io"
UNIT_KINDS = frozenset({"Application", "Kustomization", "HelmRelease"})
"""Kinds of unit resources. References between them are dependencies of units, and read as such."""


class Requirement(NamedTuple):
    """One requirement of a node. An operator without a provider has only a name."""

    ref: Ref | None
    kind: EdgeKind
    effect: Effect = Effect.BLOCKED
    required_state: RequiredState = RequiredState.EXISTS
    field: FieldPath = ()
    key: str = ""
    is_optional: bool = False
    strength: Strength = Strength.SOFT
    must_be_absent: bool = False
    name: str = ""
    is_certain: bool = True


ResolvedRequirement = tuple[Requirement, Sequence[Provider]]
"""A requirement and its providers."""


def find_requirements(
    ref: Ref,
    body: JsonObject,
    pods: PodTemplate | None,
    cluster: str,
    provider_index: ProviderIndex,
    inputs: GraphInputs,
) -> Iterator[ResolvedRequirement]:
    """Yield all requirements of an object, except those that every cluster meets."""
    kind_key = (ref.kind.group, ref.kind.name)
    namespace = "" if inputs.is_cluster_scoped(*kind_key) else ref.namespace
    if namespace and not inputs.is_preinstalled(*NAMESPACE_KIND, "", namespace):
        yield _namespace_requirement(namespace, cluster, provider_index)
    if kind_key not in inputs.served_kinds and kind_key not in inputs.engine_kinds:
        yield from _kind_requirements(ref.kind, cluster, provider_index, inputs)
    elif kind_key == SERVICE_KIND:
        yield from _selector_requirements(ref, body, cluster, provider_index)
    for mention in _deduplicate(inputs.references.find_references(body, ref.kind, pods)):
        if kind_key not in inputs.engine_kinds or mention.kind not in UNIT_KINDS:
            yield from _mention_requirements(mention, cluster, provider_index, inputs)
    yield from _storage_requirements(ref, body, cluster, provider_index)
    for call in find_service_calls(ref, body, pods, cluster, provider_index, inputs):
        yield _call_requirement(call, cluster, provider_index)
    yield from _annotation_requirements(ref, body, cluster, provider_index, inputs)


def _storage_requirements(
    ref: Ref, body: JsonObject, cluster: str, provider_index: ProviderIndex
) -> Iterator[ResolvedRequirement]:
    """Yield the default storage class, for claims that name neither a class nor a volume."""
    claims: list[tuple[FieldPath, JsonObject]]
    match ref.kind.group, ref.kind.name:
        case "", "PersistentVolumeClaim":
            claims = [(("spec",), get_mapping(body, "spec"))]
        case "apps", "StatefulSet":
            templates = enumerate(get_mappings(body, "spec", "volumeClaimTemplates"))
            claims = [
                (("spec", "volumeClaimTemplates", index, "spec"), get_mapping(template, "spec"))
                for index, template in templates
            ]
        case _:
            return
    for field, spec in claims:
        if "storageClassName" not in spec and not spec.get("volumeName"):
            default = Ref(_versionless_kind(*STORAGE_CLASS_KIND), "", DEFAULT_CLASS)
            providers = provider_index.find(cluster, *STORAGE_CLASS_KIND, "", DEFAULT_CLASS)
            yield Requirement(default, EdgeKind.REFERENCE, field=field), providers


def _deduplicate(mentions: Iterable[Reference]) -> Iterator[Reference]:
    """Yield mentions once, because rows of references and of operators may cover the same field.

    A requirement of a key includes the requirement of its object.
    """
    all_mentions = list(mentions)
    if len(all_mentions) == 1:
        yield from all_mentions
        return
    keyed = {(*_mention_key(mention), mention.field) for mention in all_mentions if mention.keys}
    seen: set[tuple[object, ...]] = set()
    for mention in all_mentions:
        key, field = (*_mention_key(mention), mention.keys), mention.field
        field = field[:-1] if field[-1:] == ("name",) else field
        if key not in seen and (mention.keys or (*_mention_key(mention), field) not in keyed):
            seen.add(key)
            yield mention


def _mention_key(mention: Reference) -> tuple[object, ...]:
    """Return the requirement of a mention, without its field."""
    return (*mention[:4], mention.effect, mention.until, mention.optional)


def _annotation_requirements(
    ref: Ref, body: JsonObject, cluster: str, provider_index: ProviderIndex, inputs: GraphInputs
) -> Iterator[ResolvedRequirement]:
    for dependency in parse_dependencies(body, ref.namespace):
        if isinstance(dependency, AnnotatedDependency):
            yield _dependency_requirement(dependency, cluster, provider_index, inputs)


def _namespace_requirement(
    namespace: str, cluster: str, provider_index: ProviderIndex
) -> ResolvedRequirement:
    ref, field = Ref(_versionless_kind(*NAMESPACE_KIND), "", namespace), ("metadata", "namespace")
    requirement = Requirement(ref, EdgeKind.NAMESPACE, Effect.REJECTED, field=field)
    return requirement, provider_index.find(cluster, *NAMESPACE_KIND, "", namespace)


def _kind_requirements(
    kind: Kind, cluster: str, provider_index: ProviderIndex, inputs: GraphInputs
) -> Iterator[ResolvedRequirement]:
    """Yield the CRD of a kind, and its operator."""
    crds = provider_index.find_crds(cluster, kind.group, kind.name)
    crd_ref = Ref(_versionless_kind(CRD_GROUP, "CustomResourceDefinition"), "", crd_name(kind))
    yield (
        Requirement(crd_ref, EdgeKind.DEFINITION, Effect.REJECTED, field=("kind",)),
        [Provider(number, is_indirect=True) for number in crds],
    )
    row = inputs.references.rows.find_row(kind)
    if row is not None and row.served_by.outside:
        return
    operators = provider_index.find_operators(cluster, kind)
    is_known = (row is not None and row.operator) or kind.group in inputs.references.rows.groups
    if operators or is_known:
        effect = Effect.BLOCKED if row is not None and row.ready_when else Effect.NONE
        requirement = Requirement(
            None,
            EdgeKind.OPERATOR,
            effect,
            RequiredState.READY,
            ("kind",),
            name=_operator_name(row, kind),
        )
        yield requirement, [Provider(number, is_indirect=True) for number in operators]


def crd_name(kind: Kind) -> str:
    """Return the name of the CRD of a kind, with an English plural; for display only."""
    singular = kind.name.lower()
    if singular.endswith("y") and singular[-2:-1] not in "aeiou":
        plural = f"{singular[:-1]}ies"
    else:
        plural = f"{singular}es" if singular.endswith(("s", "x", "ch", "sh")) else f"{singular}s"
    return f"{plural}.{kind.group}"


def _operator_name(row: KindRow | None, kind: Kind) -> str:
    return (row.operator if row is not None else "") or kind.group


def _mention_requirements(
    mention: Reference, cluster: str, provider_index: ProviderIndex, inputs: GraphInputs
) -> Iterator[ResolvedRequirement]:
    if inputs.is_preinstalled(mention.group, mention.kind, mention.namespace, mention.name):
        return
    providers = provider_index.find(
        cluster, mention.group, mention.kind, mention.namespace, mention.name
    )
    if not providers and (mention.group, mention.kind) in inputs.engine_kinds:
        return  # discovery reports missing units and sources
    ref = Ref(_versionless_kind(mention.group, mention.kind), mention.namespace, mention.name)
    for key in mention.keys or ("",):
        requirement = Requirement(
            ref,
            EdgeKind.REFERENCE,
            mention.effect,
            mention.until,
            mention.field,
            key,
            mention.optional,
        )
        yield requirement, providers


def _call_requirement(
    call: ServiceCall, cluster: str, provider_index: ProviderIndex
) -> ResolvedRequirement:
    ref = Ref(_versionless_kind(*SERVICE_KIND), call.namespace, call.name)
    requirement = Requirement(
        ref,
        EdgeKind.HOST,
        call.effect,
        RequiredState.SERVING,
        call.field,
        call.port,
        is_certain=call.is_certain,
    )
    return requirement, provider_index.find(cluster, *SERVICE_KIND, call.namespace, call.name)


def _selector_requirements(
    ref: Ref, body: JsonObject, cluster: str, provider_index: ProviderIndex
) -> Iterator[ResolvedRequirement]:
    """Yield the workloads that a Service selects. There may be others outside the repository."""
    selector = get_mapping(body, "spec", "selector")
    workloads = provider_index.find_workloads(cluster, ref.namespace, selector)
    if workloads:
        requirement = Requirement(
            ref, EdgeKind.SELECTOR, Effect.NONE, RequiredState.READY, ("spec", "selector")
        )
        yield requirement, [Provider(number, is_indirect=False) for number in workloads]


def _dependency_requirement(
    dependency: AnnotatedDependency,
    cluster: str,
    provider_index: ProviderIndex,
    inputs: GraphInputs,
) -> ResolvedRequirement:
    groups = (
        [dependency.group]
        if dependency.group is not None
        else provider_index.find_groups(dependency.kind, inputs)
    )
    providers = [
        provider
        for group in groups
        for provider in provider_index.find(
            cluster, group, dependency.kind, dependency.namespace, dependency.name
        )
    ]
    ref = Ref(
        _versionless_kind(groups[0] if groups else "", dependency.kind),
        dependency.namespace,
        dependency.name,
    )
    requirement = Requirement(
        ref,
        EdgeKind.ANNOTATION,
        required_state=dependency.required_state,
        field=("metadata", "annotations", dependency.annotation),
        strength=Strength.HARD,
        must_be_absent=dependency.must_be_absent,
    )
    return requirement, providers


def find_change_rule_pairs(
    numbered: Iterable[tuple[int, JsonObject]],
) -> Iterator[tuple[int, int, str]]:
    """Yield pairs of objects in kapp's order, each with the annotation that declares it."""
    numbered = list(numbered)
    members: dict[str, list[int]] = {}
    numbered_rules = []
    for number, body in numbered:
        for group in change_groups(body):
            members.setdefault(group, []).append(number)
        numbered_rules += [
            (number, rule)
            for rule in parse_change_rules(body)
            if not isinstance(rule, ParseProblem)
        ]
    for number, rule in numbered_rules:
        for other in members.get(rule.group, ()):
            if other != number:
                before, after = (other, number) if rule.is_after else (number, other)
                yield before, after, rule.annotation


def _versionless_kind(group: str, name: str) -> Kind:
    return Kind(group, "", name)
