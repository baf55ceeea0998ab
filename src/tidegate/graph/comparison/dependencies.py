"""Dependencies between objects that were added or removed, with their reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.documents.document import format_path
from tidegate.graph.comparison.sides import NodeKey, OrderSide, node_key
from tidegate.model.k8s.objects import versionless_key
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import EdgeKind, GraphEdge, GraphNode, NodeKind
from tidegate.model.units.unit import UnitId
from tidegate.model.views.order_diff import Change, DependencyChange

DependencyKey = tuple[NodeKey, NodeKey, str, tuple[str, ...]]


def find_dependency_changes(
    base: OrderSide, head: OrderSide, compared: Iterable[UnitId], same: Iterable[NodeKey]
) -> list[DependencyChange]:
    """Return the dependencies that were added, then those that were removed.

    `compared`: the units whose objects are known on both sides. `same`: the objects that both sides
    have. New objects are ordinary within their unit, so only what they need of other units counts.
    """
    units, common = set(compared), set(same)
    base_edges, head_edges = _edges(base), _edges(head)
    added = {key: edge for key, edge in head_edges.items() if key not in base_edges}
    removed = {key: edge for key, edge in base_edges.items() if key not in head_edges}
    return [
        *_changes(head, Change.ADDED, added, units, common, base.unknown_units),
        *_changes(base, Change.REMOVED, removed, units, common, head.unknown_units),
    ]


def _edges(side: OrderSide) -> dict[DependencyKey, GraphEdge]:
    """Return the dependencies that a rollout needs, but those that are gates of units."""
    edges: dict[DependencyKey, GraphEdge] = {}
    for edge in side.graph.edges:
        before, after = side.graph.nodes[edge.before], side.graph.nodes[edge.after]
        is_gate = edge.kind is EdgeKind.DEPENDS_ON or edge.kind is EdgeKind.PARENT
        if is_gate or edge.is_optional or edge.effect is Effect.NONE:
            continue
        required = versionless_key(edge.required_object) if edge.required_object else ()
        provider = _namespace_key(before) if edge.kind is EdgeKind.NAMESPACE else node_key(before)
        edges.setdefault((node_key(after), provider, edge.kind, required), edge)
    return edges


def _namespace_key(node: GraphNode) -> NodeKey:
    """Return what identifies a namespace: any unit may create it."""
    return node.key or (node.name,)


def _changes(
    side: OrderSide,
    change: Change,
    edges: dict[DependencyKey, GraphEdge],
    compared: set[UnitId],
    common: set[NodeKey],
    unknown_elsewhere: frozenset[UnitId],
) -> Iterator[DependencyChange]:
    """Yield changes; dependencies between the same two units of the same kind are one."""
    grouped: dict[tuple[object, ...], list[GraphEdge]] = {}
    for (after_key, before_key, _, _), edge in edges.items():
        before, after = side.graph.nodes[edge.before], side.graph.nodes[edge.after]
        if after.unit not in compared and after.unit in unknown_elsewhere:
            continue
        is_common = after_key in common
        is_new = change is Change.ADDED and _leaves_unit(before, after, edge)
        if not (is_common or is_new):
            continue
        is_single = is_common and (before_key in common or before.kind is NodeKind.EXTERNAL)
        group: tuple[object, ...] = (
            (after_key, before_key, edge.kind, edge.required_object)
            if is_single
            else (after.unit, before.unit or before_key, edge.kind)
        )
        grouped.setdefault(group, []).append(edge)
    for group_edges in grouped.values():
        first = _dependency_change(side, change, group_edges[0])
        yield msgspec.structs.replace(first, more=len(group_edges) - 1)


def _leaves_unit(before: GraphNode, after: GraphNode, edge: GraphEdge) -> bool:
    """Return whether a new object needs something that its unit does not have."""
    if edge.kind is EdgeKind.NAMESPACE:
        return False
    return before.unit != after.unit


def _dependency_change(side: OrderSide, change: Change, edge: GraphEdge) -> DependencyChange:
    before, after = side.graph.nodes[edge.before], side.graph.nodes[edge.after]
    location = edge.location or after.location
    if after.unit is not None and after.ref is not None and edge.field:
        location = side.locate_field(after.unit, after.ref, edge.field) or location
    return DependencyChange(
        change=change,
        dependent=after.name,
        dependent_unit=after.unit,
        provider=before.name,
        provider_unit=before.unit,
        kind=edge.kind,
        strength=edge.strength,
        is_external=before.kind is NodeKind.EXTERNAL,
        required_object=str(edge.required_object) if edge.required_object else "",
        field=format_path(edge.field),
        location=location,
    )
