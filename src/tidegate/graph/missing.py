"""Dependencies that the repository does not provide, and their dependents."""

from __future__ import annotations

from tidegate.documents.document import format_path
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.operators.rows import RequiredState
from tidegate.model.plans.graph import (
    Dependent,
    EdgeKind,
    Graph,
    GraphEdge,
    GraphNode,
    NodeKind,
    UnmetDependency,
    UnmetDependencyType,
)
from tidegate.model.units.unit import UnitId

TYPES_BY_KIND = {
    ("", "Namespace"): UnmetDependencyType.NAMESPACE,
    ("", "Secret"): UnmetDependencyType.SECRET,
    ("", "ConfigMap"): UnmetDependencyType.CONFIG_MAP,
    ("", "Service"): UnmetDependencyType.SERVICE,
    ("", "ServiceAccount"): UnmetDependencyType.ACCOUNT,
    ("storage.k8s.io", "StorageClass"): UnmetDependencyType.STORAGE_CLASS,
    ("cert-manager.io", "Issuer"): UnmetDependencyType.ISSUER,
    ("cert-manager.io", "ClusterIssuer"): UnmetDependencyType.ISSUER,
    ("external-secrets.io", "SecretStore"): UnmetDependencyType.STORE,
    ("external-secrets.io", "ClusterSecretStore"): UnmetDependencyType.STORE,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): UnmetDependencyType.DEFINITION,
}
TYPE_ORDER = {kind: place for place, kind in enumerate(UnmetDependencyType)}


def find_unmet_dependencies(graph: Graph) -> tuple[UnmetDependency, ...]:
    """Return all mandatory unmet dependencies, sorted by type and name."""
    dependents: dict[tuple[int, str], list[Dependent]] = {}
    for edge in graph.edges:
        if edge.is_optional or edge.must_be_absent:
            continue
        if graph.nodes[edge.before].kind is NodeKind.EXTERNAL:
            dependents.setdefault((edge.before, ""), []).append(_dependent(graph, edge))
        elif edge.is_key_missing and not _may_have_key(graph, edge):
            dependents.setdefault((edge.before, edge.key), []).append(_dependent(graph, edge))
        elif (
            edge.required_state is RequiredState.SERVING
            and edge.before in graph.services_without_endpoints
        ):
            dependents.setdefault((edge.before, ""), []).append(_dependent(graph, edge))
    unmet = [
        _unmet_dependency(graph, graph.nodes[number], key, key_dependents)
        for (number, key), key_dependents in dependents.items()
    ]
    return tuple(
        sorted(
            unmet,
            key=lambda dependency: (
                TYPE_ORDER[dependency.type],
                dependency.cluster,
                dependency.name,
                dependency.key,
            ),
        )
    )


def _may_have_key(graph: Graph, edge: GraphEdge) -> bool:
    """Return whether another provider of the same object has the key, or whether that is unknown.

    The content of an object with external dependencies may depend on them.
    """
    others = (graph.edges[index] for index in graph.dependency_edges[edge.after])
    if any(
        alternative.alternative == edge.alternative and not alternative.is_key_missing
        for alternative in others
    ):
        return True
    sources = (
        graph.nodes[graph.edges[index].before] for index in graph.dependency_edges[edge.before]
    )
    return any(source.kind is NodeKind.EXTERNAL and source.ref is not None for source in sources)


def _dependent(graph: Graph, edge: GraphEdge) -> Dependent:
    node = graph.nodes[edge.after]
    return Dependent(
        node=node.number,
        name=node.name,
        ref=node.ref or _unit_resource_ref(node.unit),
        is_unit=node.kind is NodeKind.UNIT,
        field=edge.field,
        location=edge.location,
        effect=edge.effect,
    )


def _unit_resource_ref(unit: UnitId | None) -> Ref | None:
    return None if unit is None else Ref(Kind("", "", unit.kind), unit.namespace, unit.name)


def _unmet_dependency(
    graph: Graph, node: GraphNode, key: str, dependents: list[Dependent]
) -> UnmetDependency:
    if key:
        required_object = next(
            graph.edges[index].required_object or node.ref
            for index in graph.dependent_edges[node.number]
            if graph.edges[index].key == key
        )
        is_port = required_object is not None and required_object.kind.name == "Service"
        return UnmetDependency(
            type=UnmetDependencyType.PORT if is_port else UnmetDependencyType.KEY,
            name=f"{'port ' if is_port else ''}{format_path((key,))} of {required_object}",
            node=node.number,
            cluster=node.cluster,
            ref=required_object,
            key=key,
            dependents=tuple(dependents),
        )
    return UnmetDependency(
        type=_dependency_type(graph, node),
        name=f"pods of {node.name}"
        if node.number in graph.services_without_endpoints
        else node.name,
        node=node.number,
        cluster=node.cluster,
        ref=node.ref,
        dependents=tuple(dependents),
    )


def _dependency_type(graph: Graph, node: GraphNode) -> UnmetDependencyType:
    if node.number in graph.services_without_endpoints:
        return UnmetDependencyType.PODS
    if node.ref is not None:
        kind_key = (node.ref.kind.group, node.ref.kind.name)
        return TYPES_BY_KIND.get(kind_key, UnmetDependencyType.OTHER)
    if node.unit is not None:
        return UnmetDependencyType.UNIT
    edge_kinds = {graph.edges[index].kind for index in graph.dependent_edges[node.number]}
    return (
        UnmetDependencyType.OPERATOR
        if EdgeKind.OPERATOR in edge_kinds
        else UnmetDependencyType.OTHER
    )
