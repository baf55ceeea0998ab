"""A graph for programs: one JSON document, its schema stable."""

from __future__ import annotations

from tidegate.documents.document import path_text
from tidegate.model.graph import (
    Circle,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    MissingThing,
    WaitLink,
)
from tidegate.model.objects import Json, Ref
from tidegate.model.plan import Edge
from tidegate.report.graph.picture import GraphStory, shown_nodes
from tidegate.report.places import seen_text

SCHEMA = "tidegate.dev/graph/v1"
Body = dict[str, Json]


def graph_document(story: GraphStory) -> Body:
    """Nodes, steps, order and edges; what is missing, and who waits for each other."""
    graph = story.graph
    shown = {one.number for one in shown_nodes(graph, story.units)}
    steps = [one for one in graph.steps if story.is_shown(one.unit)]
    ids = {one.id for one in steps}
    document: Body = {
        "schema": SCHEMA,
        "nodes": [_node(graph, one) for one in graph.nodes if one.number in shown],
        "steps": [_step(one) for one in steps],
        "order": [_order(one) for one in graph.order if {one.before, one.after} <= ids],
        "edges": [
            _edge(one, is_inverted=at in story.inverted)
            for at, one in enumerate(graph.edges)
            if one.before in shown and one.after in shown
        ],
        "missing": [_lack(one) for one in story.lacks if _is_asked(one, shown)],
        "circles": [_circle(one) for one in story.circles],
        "unread": [str(one) for one in graph.unread],
        "misread": [
            {"node": one.node, "annotation": one.annotation, "said": one.said}
            for one in graph.misread
            if one.node in shown
        ],
    }
    if story.path is not None:
        document["criticalPath"] = [
            {
                "step": graph.steps[one.step].id,
                "takesMs": one.takes,
                "untilMs": one.until,
                "slowest": one.slowest if one.slowest >= 0 else None,
            }
            for one in story.path
        ]
    if story.waits is not None:
        document["why"] = [_wait(one) for one in story.waits]
    return document


def _is_asked(lack: MissingThing, shown: set[int]) -> bool:
    return any(one.node in shown for one in lack.askers)


def _node(graph: Graph, one: GraphNode) -> Body:
    return {
        "id": one.number,
        "kind": one.kind.value,
        "name": one.name,
        "cluster": one.cluster,
        "unit": str(one.unit) if one.unit else None,
        "ref": _ref(one.ref),
        "step": graph.steps[one.step].id if one.step >= 0 else None,
        "place": seen_text(one.where) or None,
        "gates": one.gates,
        "checked": one.checked,
        "hook": one.hook,
    }


def _ref(ref: Ref | None) -> Json:
    if ref is None:
        return None
    kind = ref.kind
    return {"group": kind.group, "kind": kind.name, "namespace": ref.namespace, "name": ref.name}


def _step(one: GraphStep) -> Body:
    return {
        "id": one.id,
        "unit": str(one.unit),
        "phase": one.phase,
        "wave": one.wave,
        "stage": one.stage,
        "nodes": list(one.nodes),
        "gated": one.is_gated,
    }


def _order(one: Edge) -> Body:
    return {
        "before": one.before,
        "after": one.after,
        "reason": one.because.value,
        "strength": one.strength.value,
        "place": seen_text(one.where) or None,
    }


def _edge(one: GraphEdge, *, is_inverted: bool) -> Body:
    return {
        "before": one.before,
        "after": one.after,
        "want": one.want,
        "reason": one.tie.value,
        "strength": one.strength.value,
        "effect": one.effect.value,
        "until": "absent" if one.absent else one.until.value,
        "field": path_text(one.field) if one.field else None,
        "through": _ref(one.through),
        "key": one.key or None,
        "lacksKey": one.lacks_key,
        "optional": one.optional,
        "inForce": one.in_force,
        "certain": one.certain,
        "inverted": is_inverted,
        "place": seen_text(one.where) or None,
    }


def _lack(one: MissingThing) -> Body:
    return {
        "kind": one.kind.value,
        "name": one.name,
        "cluster": one.cluster,
        "ref": _ref(one.ref),
        "key": one.key or None,
        "neededBy": [
            {
                "node": asker.node,
                "name": asker.name,
                "field": path_text(asker.field) if asker.field else None,
                "effect": asker.effect.value,
                "place": seen_text(asker.where) or None,
            }
            for asker in one.askers
        ],
    }


def _circle(one: Circle) -> Json:
    return [_wait(wait) for wait in one.waits]


def _wait(one: WaitLink) -> Body:
    return {
        "who": one.who,
        "why": one.why,
        "place": seen_text(one.where) or None,
        "node": one.node,
        "edge": one.edge,
    }
