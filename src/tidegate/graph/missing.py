"""What nobody in the repository brings, and who needs it: one list, for every verb that asks."""

from __future__ import annotations

from tidegate.documents.document import path_text
from tidegate.model.graph import (
    Asker,
    Graph,
    GraphEdge,
    GraphNode,
    LackKind,
    MissingThing,
    NodeKind,
    Tie,
)
from tidegate.model.objects import Kind, Ref
from tidegate.model.operators import Until
from tidegate.model.unit import UnitId

KINDS = {
    ("", "Namespace"): LackKind.NAMESPACE,
    ("", "Secret"): LackKind.SECRET,
    ("", "ConfigMap"): LackKind.CONFIG_MAP,
    ("", "Service"): LackKind.SERVICE,
    ("", "ServiceAccount"): LackKind.ACCOUNT,
    ("storage.k8s.io", "StorageClass"): LackKind.STORAGE_CLASS,
    ("cert-manager.io", "Issuer"): LackKind.ISSUER,
    ("cert-manager.io", "ClusterIssuer"): LackKind.ISSUER,
    ("external-secrets.io", "SecretStore"): LackKind.STORE,
    ("external-secrets.io", "ClusterSecretStore"): LackKind.STORE,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): LackKind.DEFINITION,
}
ORDER = {kind: place for place, kind in enumerate(LackKind)}


def missing(graph: Graph) -> tuple[MissingThing, ...]:
    """All of it, by kind and name. What is optional or asked not to be there is not missing."""
    askers: dict[tuple[int, str], list[Asker]] = {}
    for edge in graph.edges:
        if edge.optional or edge.absent:
            continue
        if graph.nodes[edge.before].kind is NodeKind.OUTSIDE:
            askers.setdefault((edge.before, ""), []).append(_asker(graph, edge))
        elif edge.lacks_key and not _may_have_key(graph, edge):
            askers.setdefault((edge.before, edge.key), []).append(_asker(graph, edge))
        elif edge.until is Until.SERVING and edge.before in graph.unanswered:
            askers.setdefault((edge.before, ""), []).append(_asker(graph, edge))
    lacks = [_lack(graph, graph.nodes[number], key, who) for (number, key), who in askers.items()]
    return tuple(sorted(lacks, key=lambda one: (ORDER[one.kind], one.cluster, one.name, one.key)))


def _may_have_key(graph: Graph, edge: GraphEdge) -> bool:
    """Whether another one that brings the same object has the key, or nobody can know.

    What comes of an object that leans on something outside may depend on that.
    """
    others = (graph.edges[at] for at in graph.needs[edge.after])
    if any(one.want == edge.want and not one.lacks_key for one in others):
        return True
    sources = (graph.nodes[graph.edges[at].before] for at in graph.needs[edge.before])
    return any(one.kind is NodeKind.OUTSIDE and one.ref is not None for one in sources)


def _asker(graph: Graph, edge: GraphEdge) -> Asker:
    node = graph.nodes[edge.after]
    return Asker(
        node=node.number,
        name=node.name,
        ref=node.ref or _own_object(node.unit),
        is_unit=node.kind is NodeKind.UNIT,
        field=edge.field,
        where=edge.where,
        effect=edge.effect,
    )


def _own_object(unit: UnitId | None) -> Ref | None:
    return None if unit is None else Ref(Kind("", "", unit.kind), unit.namespace, unit.name)


def _lack(graph: Graph, node: GraphNode, key: str, askers: list[Asker]) -> MissingThing:
    if key:
        through = next(
            graph.edges[at].through or node.ref
            for at in graph.needed_by[node.number]
            if graph.edges[at].key == key
        )
        is_port = through is not None and through.kind.name == "Service"
        return MissingThing(
            kind=LackKind.PORT if is_port else LackKind.KEY,
            name=f"{'port ' if is_port else ''}{path_text((key,))} of {through}",
            node=node.number,
            cluster=node.cluster,
            ref=through,
            key=key,
            askers=tuple(askers),
        )
    return MissingThing(
        kind=_kind(graph, node),
        name=f"pods of {node.name}" if node.number in graph.unanswered else node.name,
        node=node.number,
        cluster=node.cluster,
        ref=node.ref,
        askers=tuple(askers),
    )


def _kind(graph: Graph, node: GraphNode) -> LackKind:
    if node.number in graph.unanswered:
        return LackKind.PODS
    if node.ref is not None:
        name = (node.ref.kind.group, node.ref.kind.name)
        return KINDS.get(name, LackKind.OTHER)
    if node.unit is not None:
        return LackKind.UNIT
    ties = {graph.edges[at].tie for at in graph.needed_by[node.number]}
    return LackKind.OPERATOR if Tie.OPERATOR in ties else LackKind.OTHER
