"""Dependency graph as text and as a JSON document with a stable schema."""

from __future__ import annotations

from tidegate.documents.document import format_path
from tidegate.model.graph import (
    Cycle,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    UnmetDependency,
    WaitLink,
)
from tidegate.model.objects import Json, JsonObject, Ref
from tidegate.model.plan import Edge
from tidegate.report.graph.picture import GraphView, visible_nodes
from tidegate.report.places import location_text

SCHEMA = "tidegate.dev/graph/v1"


def graph_document(view: GraphView) -> JsonObject:
    """Return nodes, steps, order, edges, missing objects and cycles as a JSON document."""
    graph = view.graph
    visible = {node.number for node in visible_nodes(graph, view.selected_units)}
    steps = [step for step in graph.steps if view.is_shown(step.unit)]
    ids = {step.id for step in steps}
    document: JsonObject = {
        "schema": SCHEMA,
        "nodes": [_node_document(graph, node) for node in graph.nodes if node.number in visible],
        "steps": [_step_document(step) for step in steps],
        "order": [
            _order_document(edge) for edge in graph.order if {edge.before, edge.after} <= ids
        ],
        "edges": [
            _edge_document(edge, is_inverted=index in view.inverted_edges)
            for index, edge in enumerate(graph.edges)
            if edge.before in visible and edge.after in visible
        ],
        "missing": [
            _missing_document(dependency)
            for dependency in view.missing
            if _is_needed(dependency, visible)
        ],
        "circles": [_cycle_document(cycle) for cycle in view.cycles],
        "unread": [str(unit_id) for unit_id in graph.incomplete_units],
        "misread": [
            {"node": problem.node, "annotation": problem.annotation, "said": problem.text}
            for problem in graph.unparsed_annotations
            if problem.node in visible
        ],
    }
    if view.critical_path is not None:
        document["criticalPath"] = [
            {
                "step": graph.steps[critical_step.step].id,
                "takesMs": critical_step.duration,
                "untilMs": critical_step.finishes_at,
                "slowest": critical_step.slowest_node if critical_step.slowest_node >= 0 else None,
            }
            for critical_step in view.critical_path
        ]
    if view.waits is not None:
        document["why"] = [_wait_document(wait) for wait in view.waits]
    return document


def _is_needed(dependency: UnmetDependency, visible: set[int]) -> bool:
    return any(dependent.node in visible for dependent in dependency.dependents)


def _node_document(graph: Graph, node: GraphNode) -> JsonObject:
    return {
        "id": node.number,
        "kind": node.kind.value,
        "name": node.name,
        "cluster": node.cluster,
        "unit": str(node.unit) if node.unit else None,
        "ref": _ref_document(node.ref),
        "step": graph.steps[node.step].id if node.step >= 0 else None,
        "place": location_text(node.location) or None,
        "gates": node.is_gating,
        "checked": node.has_health_check,
        "hook": node.is_hook,
    }


def _ref_document(ref: Ref | None) -> Json:
    if ref is None:
        return None
    kind = ref.kind
    return {"group": kind.group, "kind": kind.name, "namespace": ref.namespace, "name": ref.name}


def _step_document(step: GraphStep) -> JsonObject:
    return {
        "id": step.id,
        "unit": str(step.unit),
        "phase": step.phase,
        "wave": step.wave,
        "stage": step.stage,
        "nodes": list(step.nodes),
        "gated": step.is_gated,
    }


def _order_document(edge: Edge) -> JsonObject:
    return {
        "before": edge.before,
        "after": edge.after,
        "reason": edge.because.value,
        "strength": edge.strength.value,
        "place": location_text(edge.where) or None,
    }


def _edge_document(edge: GraphEdge, *, is_inverted: bool) -> JsonObject:
    return {
        "before": edge.before,
        "after": edge.after,
        "want": edge.alternative,
        "reason": edge.kind.value,
        "strength": edge.strength.value,
        "effect": edge.effect.value,
        "until": "absent" if edge.must_be_absent else edge.required_state.value,
        "field": format_path(edge.field) if edge.field else None,
        "through": _ref_document(edge.required_object),
        "key": edge.key or None,
        "lacksKey": edge.is_key_missing,
        "optional": edge.is_optional,
        "inForce": edge.is_enforced,
        "certain": edge.is_certain,
        "inverted": is_inverted,
        "place": location_text(edge.location) or None,
    }


def _missing_document(dependency: UnmetDependency) -> JsonObject:
    return {
        "kind": dependency.type.value,
        "name": dependency.name,
        "cluster": dependency.cluster,
        "ref": _ref_document(dependency.ref),
        "key": dependency.key or None,
        "neededBy": [
            {
                "node": dependent.node,
                "name": dependent.name,
                "field": format_path(dependent.field) if dependent.field else None,
                "effect": dependent.effect.value,
                "place": location_text(dependent.location) or None,
            }
            for dependent in dependency.dependents
        ],
    }


def _cycle_document(cycle: Cycle) -> Json:
    return [_wait_document(wait) for wait in cycle.links]


def _wait_document(wait: WaitLink) -> JsonObject:
    return {
        "who": wait.waiter,
        "why": wait.reason,
        "place": location_text(wait.location) or None,
        "node": wait.node,
        "edge": wait.edge,
    }
