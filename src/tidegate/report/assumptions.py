"""Missing dependencies of a simulated cluster, as the assumed scenario or as a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from tidegate.model.display import join_limited
from tidegate.model.plans.missing_dependency import (
    MAX_MISSING_NAMES,
    NEVER_ASSUMED,
    DependencyType,
    MissingDependency,
    missing_title,
)
from tidegate.model.simulation.preinstalled import (
    GivenCluster,
    GivenKind,
    GivenOperator,
    format_kind_title,
)

HEADER = "assumed to exist (not in this repository); save these lines as a scenario file:"
TITLES = {
    DependencyType.OPERATOR: "operators",
    DependencyType.KIND: "kinds without a CRD",
    DependencyType.NAMESPACE: "namespaces",
    DependencyType.OBJECT: "platform objects",
    DependencyType.SETTING: "Secrets, ConfigMaps, ServiceAccounts and PersistentVolumeClaims",
    DependencyType.SERVICE: "Services",
    DependencyType.PART: "keys and ports of existing objects",
    DependencyType.TRUST_ROOT: "trust roots, to be created manually",
}


class AssumptionsDocument(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="cluster.assumed"
):
    """JSON document of the assumed objects, in the form of a scenario."""

    given: GivenCluster


class MissingDocument(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    tag_field="event",
    tag="cluster.missing-dependency",
    rename="camel",
):
    """JSON document of a missing dependency."""

    type: DependencyType
    name: str
    cluster: str = ""
    kinds: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()


def assumption_lines(missing: Sequence[MissingDependency], given: GivenCluster) -> Iterator[str]:
    """Yield a scenario with a line per group, and as a comment who needs it."""
    if given == GivenCluster():
        return
    yield HEADER
    yield "given:"
    sections: list[tuple[str, list[str], list[MissingDependency]]] = [
        (
            "operators",
            [*map(_operator_text, given.operators)],
            _filter_missing(missing, _is_operator),
        ),
        ("kinds", [*map(_kind_text, given.kinds)], _filter_missing(missing, _is_kind)),
        ("namespaces", [*given.namespaces], []),
    ]
    for title, names, needed_for in sections:
        if names:
            yield f"  {title}: [{', '.join(names)}]{_needed_by_comment(needed_for)}"
    if given.names:
        yield "  names:"
    for title, object_names in given.names.items():
        needed_for = [dependency for dependency in missing if _is_object(dependency, title)]
        yield f"    {title}: [{', '.join(object_names)}]{_needed_by_comment(needed_for)}"


def missing_lines(missing: Sequence[MissingDependency]) -> Iterator[str]:
    """Yield all missing dependencies by group, each once, with who needs it."""
    with_cluster = len({dependency.cluster for dependency in missing}) > 1
    for dependency_type, title in TITLES.items():
        group = [dependency for dependency in missing if dependency.type is dependency_type]
        if group:
            yield f"missing: {title}"
            names = [_cluster_title(dependency, with_cluster=with_cluster) for dependency in group]
            width = max(map(len, names))
            for name, dependency in zip(names, group, strict=True):
                needed_by = join_limited(dependency.needed_by, MAX_MISSING_NAMES)
                yield f"  {name:{width}}  for {needed_by}"


def missing_documents(
    missing: Sequence[MissingDependency], given: Mapping[str, GivenCluster]
) -> Iterator[AssumptionsDocument | MissingDocument]:
    """Yield the missing dependencies and the assumptions as JSON documents.

    An empty `given` means that nothing was assumed.
    """
    for dependency in missing:
        if dependency.type in NEVER_ASSUMED or not given:
            has_kinds = dependency.type is DependencyType.OPERATOR
            yield MissingDocument(
                type=dependency.type,
                name=dependency.ref.name
                if has_kinds and dependency.ref.name
                else missing_title(dependency),
                cluster=dependency.cluster,
                kinds=tuple(map(str, dependency.kinds)) if has_kinds else (),
                needed_by=tuple(map(str, dependency.needed_by)),
            )
    if given:
        yield AssumptionsDocument(merge_given(given))


def merge_given(given: Mapping[str, GivenCluster]) -> GivenCluster:
    """Return what was assumed in any cluster: a scenario applies to all clusters."""
    merged = GivenCluster()
    for cluster in given.values():
        merged = merged.merged_with(cluster)
    return merged


def _filter_missing(
    missing: Iterable[MissingDependency], predicate: Callable[[MissingDependency], bool]
) -> list[MissingDependency]:
    return [dependency for dependency in missing if predicate(dependency)]


def _is_operator(dependency: MissingDependency) -> bool:
    return dependency.type is DependencyType.OPERATOR and bool(dependency.ref.name)


def _is_kind(dependency: MissingDependency) -> bool:
    is_unnamed_operator = dependency.type is DependencyType.OPERATOR and not dependency.ref.name
    return dependency.type is DependencyType.KIND or is_unnamed_operator


def _is_object(dependency: MissingDependency, title: str) -> bool:
    kind = dependency.ref.kind
    return (
        dependency.type is DependencyType.OBJECT
        and format_kind_title(kind.group, kind.name) == title
    )


def _needed_by_comment(missing: Sequence[MissingDependency]) -> str:
    """Return a comment with who needs a group and what it creates."""
    refs = dict.fromkeys(ref for dependency in missing for ref in dependency.needed_by)
    if not refs:
        return ""
    products = dict.fromkeys(ref for dependency in missing for ref in dependency.produced_secrets)
    products_text = f" (creates {join_limited(products, MAX_MISSING_NAMES)})" if products else ""
    unknown_kinds = dict.fromkeys(
        dependency.ref.kind.name
        for dependency in missing
        if dependency.has_unknown_health and not dependency.is_served
    )
    kinds_text = join_limited(unknown_kinds, MAX_MISSING_NAMES)
    guess_text = (
        f"; unknown health of {kinds_text}: assumed ready after a moment" if unknown_kinds else ""
    )
    return f"  # for {join_limited(refs, MAX_MISSING_NAMES)}{products_text}{guess_text}"


def _operator_text(operator: GivenOperator) -> str:
    return operator.name if operator == GivenOperator(operator.name) else _inline_mapping(operator)


def _kind_text(kind: GivenKind) -> str:
    return kind.name if kind == GivenKind(kind.name) else _inline_mapping(kind)


def _inline_mapping(given: GivenOperator | GivenKind) -> str:
    """Return a mapping in one line, without default values."""
    default = type(given)(given.name)
    fields = [
        (name, getattr(given, name))
        for name in given.__struct_fields__
        if getattr(given, name) != getattr(default, name)
    ]
    items = (f"{name}: {str(value).lower()}" for name, value in fields)
    return f"{{{', '.join((f'name: {given.name}', *items))}}}"


def _cluster_title(dependency: MissingDependency, *, with_cluster: bool) -> str:
    title = missing_title(dependency)
    return f"{dependency.cluster}: {title}" if with_cluster and dependency.cluster else title
