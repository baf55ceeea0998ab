"""Repositories for graphs, written as YAML."""

from __future__ import annotations

from functools import cache

import msgspec

from tests.support.parsed_manifests import parse_all_manifests
from tidegate.documents import read_documents
from tidegate.graph.build import build_graph
from tidegate.graph.inputs import GraphInputs
from tidegate.model.k8s.objects import Kind
from tidegate.model.plans.graph import Graph, GraphEdge, GraphNode
from tidegate.model.plans.manifest import Manifests
from tidegate.model.times import Ms
from tidegate.model.units.policy import Policy
from tidegate.model.units.semantics import TIDEGATE, Semantics
from tidegate.model.units.unit import Destination, Unit, UnitId
from tidegate.plan.build.build import build_plan
from tidegate.planning.graph import graph_inputs


@cache
def ground() -> GraphInputs:
    return graph_inputs(None)


def unit_of(name: str, *, rules: Semantics = TIDEGATE, depends: tuple[str, ...] = ()) -> Unit:
    from tidegate.model.units.unit import Dependency  # noqa: PLC0415

    return Unit(
        id=UnitId("", "", "shop", name),
        destination=Destination("", "shop"),
        policy=Policy(semantics=rules),
        dependencies=tuple(Dependency(unit=UnitId("", "", "shop", depend)) for depend in depends),
    )


def manifests_of(unit: Unit, text: str) -> Manifests:
    documents = read_documents(text.encode(), f"{unit.id.name}.yaml")
    wide = {(group, kind) for (group, kind), named in ground().served_kinds.items() if not named}

    def is_namespaced(kind: Kind) -> bool | None:
        if (kind.group, kind.name) in wide or ground().is_cluster_scoped(kind.group, kind.name):
            return False
        return True if (kind.group, kind.name) in ground().served_kinds else None

    return parse_all_manifests(unit, documents, is_namespaced)


def graph_of(*manifests: Manifests) -> Graph:
    known = [msgspec.structs.replace(item) for item in manifests]
    plan = build_plan(known, readiness_timeout=lambda _: Ms(0))
    return build_graph(known, plan, ground())


def graph_of_text(text: str, *, rules: Semantics = TIDEGATE) -> Graph:
    return graph_of(manifests_of(unit_of("app", rules=rules), text))


def node(graph: Graph, name: str) -> GraphNode:
    (result,) = (node for node in graph.nodes if node.name == name)
    return result


def edges_of(graph: Graph, name: str) -> dict[str, GraphEdge]:
    """The dependencies of a node: by the name of the referenced object, or of its producer."""
    number = node(graph, name).number
    matches = (graph.edges[at] for at in graph.dependency_edges[number])
    return {str(item.required_object or graph.nodes[item.before].name): item for item in matches}
