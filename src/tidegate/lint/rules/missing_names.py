"""Rules about unknown names: of objects, of keys and ports, and of kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.dependencies import DependencyIndex, dependency_index
from tidegate.lint.names import object_name
from tidegate.lint.outside import outside_sources
from tidegate.lint.pods import pod_template, template_path
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.rules.skipped_crds import skipped_definitions
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, Kind, Ref, versionless_key
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import (
    Dependent,
    EdgeKind,
    GraphEdge,
    UnmetDependency,
    UnmetDependencyType,
)
from tidegate.model.text.suggest import find_misspelled, suggest
from tidegate.schema.builtin import served_kinds
from tidegate.schema.removed_versions import may_be_served

CRD_KIND = "CustomResourceDefinition"
CLASS_KINDS = frozenset({"StorageClass", "VolumeSnapshotClass", "IngressClass", "GatewayClass"})
"""Kinds that the charts of drivers and controllers create, often with similar names."""
SEPARATE_TYPES = frozenset(
    {
        UnmetDependencyType.DEFINITION,
        UnmetDependencyType.OPERATOR,
        UnmetDependencyType.UNIT,
        UnmetDependencyType.PODS,
    }
)
NAMING_EDGES = frozenset({EdgeKind.REFERENCE, EdgeKind.NAMESPACE})
PART_NAMES = {UnmetDependencyType.KEY: "key", UnmetDependencyType.PORT: "port"}


@rule(
    "ORD061",
    "Reference to a missing object, key or port",
    Severity.ERROR,
    why="the object waits forever, because the referenced object, key or port does not exist",
    fix="correct the name, or add the missing object, key or port",
)
def dangling_reference(context: LintContext) -> Iterator[Diagnostic]:
    index = dependency_index(context)
    yield from skipped_definitions(context)
    yield from _misspelled_selectors(context)
    for unmet_dependency in context.missing:
        if unmet_dependency.type in SEPARATE_TYPES or unmet_dependency.ref is None:
            continue
        dependents = [
            candidate
            for candidate in unmet_dependency.dependents
            if _is_named_in_field(index, unmet_dependency, candidate)
        ]
        if not dependents:
            continue
        if unmet_dependency.type in PART_NAMES:
            yield from _missing_part(index, unmet_dependency, dependents[0], unmet_dependency.ref)
        else:
            yield from _missing_name(index, unmet_dependency, dependents, unmet_dependency.ref)


def _misspelled_selectors(context: LintContext) -> Iterator[Diagnostic]:
    """Yield Services without pods whose selector looks like misspelled labels of pods.

    Without such labels an operator, or something outside of the repository, may create the pods.
    """
    labels_by_namespace: dict[tuple[str, str], list[tuple[LintObject, JsonObject]]] = {}
    for obj in context.objects:
        if template_path(obj) is not None:
            labels = get_mapping(pod_template(obj), "metadata", "labels")
            key = (obj.unit.destination.cluster, obj.ref.namespace)
            labels_by_namespace.setdefault(key, []).append((obj, labels))
    for service in context.objects_of_kind("", "Service"):
        selector = get_mapping(service.body, "spec", "selector")
        key = (service.unit.destination.cluster, service.ref.namespace)
        workloads = labels_by_namespace.get(key, ())
        if not selector or any(selector.items() <= labels.items() for _, labels in workloads):
            continue
        for workload, labels in workloads:
            wrong = [label for label in selector if selector[label] != labels.get(label)]
            if all(find_misspelled(str(selector[at]), [str(labels.get(at))]) for at in wrong):
                yield Diagnostic(
                    message=(
                        f"{object_name(service.ref)} selects no pods: no workload has the label"
                        f" `{wrong[0]}: {selector[wrong[0]]}`"
                    ),
                    at=FieldRef(service.document, ("spec", "selector", wrong[0])),
                    related=(FieldRef(workload.document),),
                    severity=Severity.WARNING,
                    why="a Service without pods refuses all connections",
                    fix=f"did you mean `{labels[wrong[0]]}`, as in {object_name(workload.ref)}?",
                )
                break


def _is_named_in_field(
    index: DependencyIndex, unmet_dependency: UnmetDependency, dependent: Dependent
) -> bool:
    """Return whether an object refers to the dependency in a field; host names do not count."""
    if dependent.node not in index.objects:
        return False
    edge_kinds = {
        edge.kind for edge in _edges(index, dependent) if edge.before == unmet_dependency.node
    }
    return not NAMING_EDGES.isdisjoint(edge_kinds)


def _missing_part(
    index: DependencyIndex, unmet_dependency: UnmetDependency, dependent: Dependent, ref: Ref
) -> Iterator[Diagnostic]:
    obj, part_name = index.objects[dependent.node], PART_NAMES[unmet_dependency.type]
    owners = index.context.by_identity.get((unmet_dependency.cluster, *versionless_key(ref)), ())
    if any(owner.document.is_unknown(("spec", "ports")) for owner in owners):
        return
    # A route without its backend is accepted, and answers with an error (Gateway API, backendRefs).
    is_blocked = dependent.effect is Effect.BLOCKED and ref.kind.name != "Service"
    yield Diagnostic(
        message=(
            f"{object_name(obj.ref)} refers to {part_name} `{unmet_dependency.key}`, which"
            f" {object_name(ref)} does not have"
        ),
        at=FieldRef(obj.document, dependent.field),
        severity=Severity.ERROR if is_blocked else Severity.WARNING,
        why="requests to this port fail" if ref.kind.name == "Service" else "",
        fix=f"correct the {part_name}, or add it to {object_name(ref)}",
    )


def _missing_name(
    index: DependencyIndex, unmet: UnmetDependency, dependents: list[Dependent], ref: Ref
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each object that refers to a missing object.

    Without a reason why the missing object may exist, it is a warning. A similar name is more
    probable than most reasons.
    """
    sources = outside_sources(index.context)
    units = [index.objects[dependent.node].unit for dependent in dependents]
    reason = _unknown_scope(index, unmet, dependents) or sources.reason(unmet.cluster, ref, units)
    similar, elsewhere = _similar_names(index, unmet, dependents[0], ref)
    has_creator = sources.is_named_after_owner(unmet.cluster, ref)
    has_creator = has_creator or bool(reason and ref.kind.name in CLASS_KINDS)
    guess = similar and not elsewhere and not has_creator and not sources.mention(ref)
    if guess:
        fix = f"did you mean `{similar}`?"
    elif elsewhere:
        fix = f"create {object_name(ref)}, or copy {ref.kind.name} `{elsewhere}/{ref.name}`"
    else:
        fix = f"correct the name, or add {object_name(ref)}"
    for dependent in (
        dependents if unmet.type is not UnmetDependencyType.NAMESPACE else dependents[:1]
    ):
        obj = index.objects[dependent.node]
        # A StatefulSet without its Service runs; only its pods have no DNS names.
        is_harmless = dependent.effect is Effect.NONE and (
            ref.kind.name != "Service" or obj.ref.kind.name == "StatefulSet"
        )
        is_note = is_harmless or (not guess and (reason or elsewhere))
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)} refers to {object_name(ref)}, which is not in this"
                " repository"
            ),
            at=FieldRef(obj.document, dependent.field),
            severity=Severity.NOTE if is_note else Severity.WARNING,
            why="" if guess else reason or _without(obj, ref, dependent.effect),
            fix=fix,
            cause=f"{unmet.cluster} {'Namespace' if sources.lacks_namespaces(ref) else ref}",
        )


def _unknown_scope(
    index: DependencyIndex, unmet: UnmetDependency, dependents: Iterable[Dependent]
) -> str:
    """Return why a namespace may not be needed: only objects of unknown kinds are in it."""
    if unmet.type is not UnmetDependencyType.NAMESPACE:
        return ""
    kinds = {index.objects[dependent.node].ref.kind for dependent in dependents}
    catalog = index.context.catalog
    known = {served.kind for served in served_kinds()} | _defined_kinds(index.context)
    if any(kind in known or catalog.find_row(kind) is not None for kind in kinds):
        return ""
    name = min(kind.name for kind in kinds)
    return f"{name} may be a kind without namespaces, because its CRD is not known"


def _defined_kinds(context: LintContext) -> set[Kind]:
    """Return the kinds that CRDs of the repository define."""
    return {
        Kind(
            get_text(definition.body, "spec", "group"),
            get_text(version, "name"),
            get_text(definition.body, "spec", "names", "kind"),
        )
        for definition in context.objects_of_kind("apiextensions.k8s.io", CRD_KIND)
        for version in get_mappings(definition.body, "spec", "versions")
    }


def _without(obj: LintObject, ref: Ref, effect: Effect) -> str:
    """Return what happens if a missing object is not created by other means."""
    pods = "" if ref.kind.name == "Namespace" else " or its pods"
    consequence = {
        Effect.REJECTED: f"the API server rejects {object_name(obj.ref)}{pods}",
        Effect.FAILS: f"{object_name(obj.ref)} fails",
        Effect.NONE: f"{object_name(obj.ref)} has no effect",
    }.get(effect, f"{object_name(obj.ref)} never becomes ready")
    return f"unless {object_name(ref)} is created by other means, {consequence}"


def _similar_names(
    index: DependencyIndex, unmet: UnmetDependency, dependent: Dependent, ref: Ref
) -> tuple[str, str]:
    """Return a similar name in the namespace, and another namespace with an object of the name."""
    same_kind = [
        (namespace, existing_name)
        for cluster, group, kind, namespace, existing_name in index.context.provided
        if (cluster, group, kind) == (unmet.cluster, ref.kind.group, ref.kind.name)
    ]
    in_namespace = {name for at, name in same_kind if at == ref.namespace or not at}
    referenced = (
        edge.required_object or index.graph.nodes[edge.before].ref
        for edge in _edges(index, dependent)
    )
    referenced_names = {
        other.name for other in referenced if other is not None and other.kind.name == ref.kind.name
    }
    similar = find_misspelled(ref.name, in_namespace - referenced_names)
    elsewhere = sorted(
        at for at, existing_name in same_kind if existing_name == ref.name and at != ref.namespace
    )
    return similar, elsewhere[0] if elsewhere else ""


def _edges(index: DependencyIndex, dependent: Dependent) -> Iterator[GraphEdge]:
    return (index.graph.edges[at] for at in index.graph.dependency_edges[dependent.node])


@rule(
    "ORD062",
    "Unknown kind or version in a Kubernetes API group",
    Severity.ERROR,
    why="the API group is built into Kubernetes, but has no such kind or version",
    fix="correct `kind` or `apiVersion`",
)
def unknown_kind(context: LintContext) -> Iterator[Diagnostic]:
    served = {served_kind.kind for served_kind in served_kinds()}
    names: dict[str, set[str]] = {}
    for kind in served:
        names.setdefault(kind.group, set()).add(kind.name)
    for obj in context.objects:
        kind = obj.ref.kind
        if kind in served or kind.group not in names:
            continue
        versions = sorted(
            known_kind.version for known_kind in served if _is_same_kind(known_kind, kind)
        )
        is_optional = bool(versions) and may_be_served(kind)
        guess = suggest(kind.name, names[kind.group])
        group = f"{kind.group}/" if kind.group else ""
        fix = f"write `apiVersion: {group}{versions[-1]}`" if versions else ""
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)}: Kubernetes does not serve"
                f" `{group}{kind.version} {kind.name}`"
            ),
            at=FieldRef(obj.document, ("apiVersion",) if versions else ("kind",)),
            severity=Severity.ERROR
            if guess and not versions
            else Severity.NOTE
            if is_optional
            else Severity.WARNING,
            why="an API server serves this version only if `--runtime-config` enables it"
            if is_optional
            else "",
            fix=fix or guess,
            cause=f"{kind.api_version} {kind.name}",
        )


def _is_same_kind(kind: Kind, other: Kind) -> bool:
    return (kind.group, kind.name) == (other.group, other.name)
