"""Rules about unknown names: of objects, of keys and ports, and of kinds."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tidegate.lint.context import LintContext
from tidegate.lint.dependencies import DependencyIndex, dependency_index
from tidegate.lint.names import object_name
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.model.finding import Severity
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import (
    Dependent,
    EdgeKind,
    GraphEdge,
    UnmetDependency,
    UnmetDependencyType,
)
from tidegate.schema.builtin import served_kinds

SIMILARITY_CUTOFF = 0.85
SEPARATE_TYPES = frozenset(
    {
        UnmetDependencyType.DEFINITION,
        UnmetDependencyType.OPERATOR,
        UnmetDependencyType.UNIT,
        UnmetDependencyType.PODS,
    }
)
NAMING_EDGES = frozenset({EdgeKind.REFERENCE, EdgeKind.NAMESPACE})
NO_DIGITS = str.maketrans("", "", "0123456789")
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
    for unmet_dependency in context.missing:
        if unmet_dependency.type in SEPARATE_TYPES or unmet_dependency.ref is None:
            continue
        dependent = next(
            (
                candidate
                for candidate in unmet_dependency.dependents
                if _is_named_in_field(index, unmet_dependency, candidate)
            ),
            None,
        )
        if dependent is None:
            continue
        build_diagnostics = _missing_part if unmet_dependency.type in PART_NAMES else _missing_name
        yield from build_diagnostics(index, unmet_dependency, dependent, unmet_dependency.ref)


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
    yield Diagnostic(
        message=(
            f"{object_name(obj.ref)} refers to {part_name} `{unmet_dependency.key}`, which"
            f" {object_name(ref)} does not have"
        ),
        at=FieldRef(obj.document, dependent.field),
        severity=Severity.ERROR if dependent.effect is Effect.BLOCKED else Severity.WARNING,
        fix=f"correct the {part_name}, or add it to {object_name(ref)}",
    )


def _missing_name(
    index: DependencyIndex, unmet_dependency: UnmetDependency, dependent: Dependent, ref: Ref
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if there is a similar object; other objects may exist in the cluster."""
    obj = index.objects[dependent.node]
    same_kind = [
        (namespace, existing_name)
        for cluster, group, kind, namespace, existing_name in index.context.provided
        if (cluster, group, kind) == (unmet_dependency.cluster, ref.kind.group, ref.kind.name)
    ]
    names_in_namespace = sorted(
        {existing_name for at, existing_name in same_kind if at == ref.namespace or not at}
    )
    similar = [
        similar_name
        for similar_name in get_close_matches(
            ref.name, names_in_namespace, cutoff=SIMILARITY_CUTOFF
        )
        if _differs(similar_name, ref)
    ]
    referenced = {
        edge.required_object or index.graph.nodes[edge.before].ref
        for edge in _edges(index, dependent)
    }
    similar = [
        similar_name
        for similar_name in similar
        if similar_name
        not in {referenced_ref.name for referenced_ref in referenced if referenced_ref}
    ]
    elsewhere = sorted(
        at for at, existing_name in same_kind if existing_name == ref.name and at != ref.namespace
    )
    if not similar and not elsewhere:
        return
    yield Diagnostic(
        message=(
            f"{object_name(obj.ref)} refers to {object_name(ref)}, which is not in this repository"
        ),
        at=FieldRef(obj.document, dependent.field),
        severity=Severity.WARNING if similar else Severity.NOTE,
        fix=(
            f"did you mean `{similar[0]}`?"
            if similar
            else f"create {object_name(ref)}, or copy {ref.kind.name} `{elsewhere[0]}/{ref.name}`"
        ),
    )


def _edges(index: DependencyIndex, dependent: Dependent) -> Iterator[GraphEdge]:
    return (index.graph.edges[at] for at in index.graph.dependency_edges[dependent.node])


def _differs(similar: str, ref: Ref) -> bool:
    """Return whether two names differ in more than digits; numbered objects have similar names."""
    return similar.translate(NO_DIGITS) != ref.name.translate(NO_DIGITS)


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
        matches = get_close_matches(kind.name, names[kind.group], n=1)
        group = f"{kind.group}/" if kind.group else ""
        fix = f"write `apiVersion: {group}{versions[-1]}`" if versions else ""
        fix = fix or (f"did you mean `{matches[0]}`?" if matches else "")
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)}: Kubernetes does not serve"
                f" `{group}{kind.version} {kind.name}`"
            ),
            at=FieldRef(obj.document, ("apiVersion",) if versions else ("kind",)),
            severity=Severity.ERROR if matches and not versions else Severity.WARNING,
            fix=fix,
        )


def _is_same_kind(kind: Kind, other: Kind) -> bool:
    return (kind.group, kind.name) == (other.group, other.name)
