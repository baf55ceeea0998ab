"""Views of the dependency graph: units, critical path, why a node waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import Session
from tidegate.errors import UsageError
from tidegate.graph.cycles import find_cycles
from tidegate.graph.missing import find_unmet_dependencies
from tidegate.graph.paths import explain_wait
from tidegate.graph.paths import find_critical_path as find_path
from tidegate.graph.reachability import RelativePosition, StepReachability, relative_position
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import CriticalStep, EdgeKind, Graph, GraphNode, NodeKind
from tidegate.model.text.names import resolve_name
from tidegate.model.units.unit import UnitId
from tidegate.model.views.graph import GraphView
from tidegate.planning.graph import GraphResult, estimate_times, make_graph
from tidegate.workspace.workspace import Workspace

MAX_LISTED = 4


class GraphQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What to show of a graph: all of it, some units, the critical path, or why a node waits."""

    units: tuple[str, ...] = ()
    critical: bool = False
    why: tuple[str, str] | None = None


async def graph_views(
    session: Session, workspace: Workspace, query: GraphQuery
) -> tuple[Workspace, list[tuple[GraphResult, GraphView]]]:
    """Return the graph and its view for each alternative of the workspace."""
    views = []
    for alternative in workspace.split_alternatives():
        result = await make_graph(alternative.unit_trees, session)
        views.append((result, build_graph_view(result, query, session.targets.simulation)))
    return workspace, views


def build_graph_view(
    result: GraphResult, query: GraphQuery, simulation: SimulationConfig | None
) -> GraphView:
    """Return the graph with everything that was derived from it."""
    graph = result.graph
    path, waits = None, None
    if query.critical:
        path = tuple(_find_critical_path(result, simulation))
    if query.why is not None:
        waiting, awaited = (find_node(graph, name) for name in query.why)
        waits = tuple(explain_wait(graph, waiting, awaited))
    return GraphView(
        graph=graph,
        inverted_edges=find_inverted_edges(graph),
        cycles=find_cycles(graph),
        missing=find_unmet_dependencies(graph),
        critical_path=path,
        waits=waits,
        selected_units=_selected_units(graph, query.units) if query.units else None,
    )


def find_inverted_edges(graph: Graph) -> frozenset[int]:
    """Return the indexes of required edges whose consumer comes before all providers."""
    step_reach = StepReachability(graph)
    by_requirement: dict[int, list[int]] = {}
    for index, edge in enumerate(graph.edges):
        if not (edge.is_optional or edge.must_be_absent or edge.effect is Effect.NONE):
            by_requirement.setdefault(edge.alternative, []).append(index)

    def is_inverted(index: int) -> bool:
        edge = graph.edges[index]
        return (
            relative_position(graph, step_reach, edge.before, edge.after) is RelativePosition.AFTER
        )

    return frozenset(
        index
        for indexes in by_requirement.values()
        if all(map(is_inverted, indexes))
        for index in indexes
    )


def _find_critical_path(
    result: GraphResult, simulation: SimulationConfig | None
) -> list[CriticalStep]:
    duration, pause = estimate_times(result, simulation)
    return find_path(result.graph, duration, pause)


def find_node(graph: Graph, name: str) -> int:
    """Return the number of the node with this name. Raises UsageError for none or several."""
    query = name.strip()
    matches = [node for node in graph.nodes if query in _node_names(node)]
    units = [node for node in matches if node.kind is NodeKind.UNIT]
    candidates = units if len(units) == 1 else graph.nodes
    node = resolve_name(
        query,
        ((_node_names(candidate), candidate) for candidate in candidates),
        partial(UsageError, "usage.node"),
        noun="unit or object",
        hint="use a unit, or `Kind/namespace/name`",
    )
    return node.number


def _node_names(node: GraphNode) -> tuple[str, ...]:
    """Return the names of a node: `Job/shop/migrate`, `Job/migrate`, `migrate`."""
    if node.kind is NodeKind.UNIT and node.unit is not None:
        return node.unit.names
    return (*(node.ref.names if node.ref else ()), node.name)


def _selected_units(graph: Graph, names: Sequence[str]) -> frozenset[UnitId]:
    """Return the named units with all their descendants."""
    selected = {graph.nodes[find_node(graph, name)].unit for name in names}
    children: dict[UnitId | None, list[UnitId]] = {}
    for edge in graph.edges:
        before, after = graph.nodes[edge.before], graph.nodes[edge.after]
        if edge.kind is EdgeKind.PARENT and after.unit is not None:
            children.setdefault(before.unit, []).append(after.unit)
    pending = list(selected)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in selected:
                selected.add(child)
                pending.append(child)
    return frozenset(unit_id for unit_id in selected if unit_id is not None)
