"""Dependency graph as text and as a JSON document with a stable schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.documents.document import format_path
from tidegate.errors import sanitize
from tidegate.model.display import count_noun, format_seconds, join_limited
from tidegate.model.display_paths import display_paths_in, location_text
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import (
    CriticalStep,
    Cycle,
    EdgeKind,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    NodeKind,
    UnmetDependency,
    WaitLink,
)
from tidegate.model.plans.plan import Edge, EdgeReason
from tidegate.model.rollouts.names import relative_unit_name, step_name
from tidegate.model.units.unit import UnitId
from tidegate.model.views.graph import GraphView
from tidegate.report.graph.layout import visible_nodes

MAX_DEPENDENTS = 3
WaveNames = dict[tuple[UnitId, UnitId], str]
HIDDEN_EDGE_KINDS = frozenset({EdgeKind.NAMESPACE, EdgeKind.DEFINITION, EdgeKind.SELECTOR})
"""Kinds of edges that are shown only if they are inverted."""


def graph_lines(view: GraphView) -> Iterator[str]:
    """Yield the units in deployment order, then problems, then missing objects."""
    graph = view.graph
    if view.waits is not None:
        yield from why_lines(view.waits)
        return
    if view.critical_path is not None:
        yield from critical_path_lines(graph, view.critical_path)
        return
    waves = _parent_waves(graph)
    steps: dict[UnitId, list[GraphStep]] = {}
    for step in graph.steps:
        steps.setdefault(step.unit, []).append(step)
    for unit_id in (*steps, *(other_id for other_id in graph.unit_nodes if other_id not in steps)):
        unit = graph.unit_nodes.get(unit_id)
        if unit is not None and view.is_shown(unit_id):
            yield from _unit_lines(view, unit, steps.get(unit_id, []), waves)
            yield ""
    yield from _problem_lines(view)


def _unit_lines(
    view: GraphView, unit: GraphNode, steps: list[GraphStep], waves: WaveNames
) -> Iterator[str]:
    graph = view.graph
    order_text = ", ".join(_order_texts(graph, unit, waves))
    yield f"{unit.name}{': ' if order_text else ''}{order_text}"
    if unit.unit in graph.incomplete_units:
        yield "  (incomplete: some of its objects are unknown)"
    for step in steps:
        if step.nodes:
            yield f"  {step_name(step)}"
        for number in step.nodes:
            node = graph.nodes[number]
            yield f"    {node.name}{' (hook)' if node.is_hook else ''}"
            yield from _need_lines(view, node)


def _order_texts(graph: Graph, unit: GraphNode, waves: WaveNames) -> Iterator[str]:
    for index in graph.dependency_edges[unit.number]:
        edge = graph.edges[index]
        other = graph.nodes[edge.before]
        unit_id, other_id = unit.unit, other.unit
        name = relative_unit_name(unit_id, other_id) if unit_id and other_id else other.name
        if edge.kind is EdgeKind.PARENT:
            wave = waves.get((unit_id, other_id)) if unit_id and other_id else None
            yield f"created by {name}{f' in {wave}' if wave else ''}"
        elif edge.kind is EdgeKind.DEPENDS_ON:
            yield f"after {name} ({edge.kind})"
        else:
            yield f"needs {name} ({edge.kind})"


def _parent_waves(graph: Graph) -> WaveNames:
    """Return by unit and parent the wave of the parent in which the unit starts."""
    wave_names: WaveNames = {}
    for edge in graph.order:
        if edge.reason is EdgeReason.PARENT:
            before, after = (
                graph.steps[graph.step_numbers[end]] for end in (edge.before, edge.after)
            )
            if not before.stage:
                wave_names.setdefault((after.unit, before.unit), step_name(before))
    return wave_names


def _need_lines(view: GraphView, node: GraphNode) -> Iterator[str]:
    graph = view.graph
    for index in graph.dependency_edges[node.number]:
        edge = graph.edges[index]
        before = graph.nodes[edge.before]
        is_shown = edge.kind not in HIDDEN_EDGE_KINDS or index in view.inverted_edges
        if is_shown and before.kind is not NodeKind.UNIT:
            yield (
                f"      {_need_text(graph, edge, before, is_inverted=index in view.inverted_edges)}"
            )


def _need_text(graph: Graph, edge: GraphEdge, before: GraphNode, *, is_inverted: bool) -> str:
    requirement = (
        f"{edge.required_object} from {before.name}" if edge.required_object else before.name
    )
    notes = [str(edge.kind)]
    if edge.key:
        ref = edge.required_object or before.ref
        is_port = ref is not None and ref.kind.name == "Service"
        notes.append(f"{'port' if is_port else 'key'} {edge.key}")
    if edge.is_key_missing:
        notes.append("not found")
    if before.kind is NodeKind.EXTERNAL:
        notes.append("not in this repository")
    elif is_inverted:
        notes.append(f"applied later, in {_step_of_unit(graph, before)}")
    if edge.is_optional:
        notes.append("optional")
    elif edge.effect is Effect.NONE:
        notes.append("optional at startup")
    if not edge.is_enforced:
        notes.append("not enforced")
    return f"needs {requirement} ({', '.join(notes)})"


def _step_of_unit(graph: Graph, node: GraphNode) -> str:
    return f"{step_name(graph.steps[node.step])} of {node.unit}"


def _problem_lines(view: GraphView) -> Iterator[str]:
    yield from cycle_lines(view.cycles)
    if view.cycles:
        yield ""
    for problem in view.graph.unparsed_annotations:
        node = view.graph.nodes[problem.node]
        annotation_text = f"`{sanitize(problem.text)}` in `{problem.annotation}` of {node.name}"
        yield f"cannot parse {annotation_text}, {location_text(node.location)}"
    if view.missing:
        yield "not in this repository:"
        yield from (f"  {line}" for line in missing_lines(view.missing))
    if view.graph.incomplete_units:
        yield ""
        units = view.graph.incomplete_units
        names = join_limited(units, MAX_DEPENDENTS)
        yield f"incomplete: some objects of {names} are unknown and may provide missing objects"


def cycle_lines(cycles: Iterable[Cycle]) -> Iterator[str]:
    """Yield each cycle as a chain of sentences with locations."""
    for cycle in cycles:
        yield "dependency cycle:"
        yield from (f"  {line}" for line in wait_lines(cycle.links))


def wait_lines(waits: Iterable[WaitLink]) -> Iterator[str]:
    for wait in waits:
        yield (
            f"{wait.waiter} {display_paths_in(wait.reason)}"
            f"{f', {location_text(wait.location)}' if wait.location else ''}"
        )


def why_lines(waits: Iterable[WaitLink]) -> Iterator[str]:
    lines = list(wait_lines(waits))
    yield from lines or ["no wait: neither the order nor a reference connects the two"]


def missing_lines(missing: Iterable[UnmetDependency]) -> Iterator[str]:
    """Yield each missing object with the objects that need it."""
    for dependency in missing:
        dependents = [
            _dependent_text(dependent.name, dependent.field, location_text(dependent.location))
            for dependent in dependency.dependents
        ]
        if len(dependents) == 1:
            yield f"{dependency.name}: needed by {dependents[0]}"
            continue
        yield f"{dependency.name}: needed by"
        yield from (f"  {dependent}" for dependent in dependents[:MAX_DEPENDENTS])
        if len(dependents) > MAX_DEPENDENTS:
            yield f"  and {len(dependents) - MAX_DEPENDENTS} more"


def _dependent_text(name: str, field: tuple[str | int, ...], location: str) -> str:
    field_text = format_path(field) if field and field != ("kind",) else ""
    notes = ", ".join(part for part in (field_text, location) if part)
    return f"{name} ({notes})" if notes else name


def critical_path_lines(graph: Graph, path: Iterable[CriticalStep]) -> Iterator[str]:
    """Yield the steps that determine the duration, and their slowest objects."""
    rows = [(critical_step, graph.steps[critical_step.step]) for critical_step in path]
    if not rows:
        return
    names = [f"{step.unit}: {step_name(step)}" for _, step in rows]
    width = max(map(len, names))
    for name, (critical_step, _) in zip(names, rows, strict=True):
        slowest = (
            graph.nodes[critical_step.slowest_node].name
            if critical_step.slowest_node >= 0 and critical_step.duration
            else ""
        )
        times = (
            f"  {format_seconds(critical_step.duration):>8}  until"
            f" {format_seconds(critical_step.finishes_at):>8}"
        )
        yield f"{name:{width}}{times}{f'  {slowest}' if slowest else ''}".rstrip()
    yield (
        f"{count_noun(len(rows), 'step')}, about {format_seconds(rows[-1][0].finishes_at)} without"
        " failures"
    )


SCHEMA = "tidegate.dev/graph/v2"


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
        "cycles": [_cycle_document(cycle) for cycle in view.cycles],
        "incompleteUnits": [str(unit_id) for unit_id in graph.incomplete_units],
        "invalidAnnotations": [
            {"node": problem.node, "annotation": problem.annotation, "text": problem.text}
            for problem in graph.unparsed_annotations
            if problem.node in visible
        ],
    }
    if view.critical_path is not None:
        document["criticalPath"] = [
            {
                "step": graph.steps[critical_step.step].id,
                "durationMs": critical_step.duration,
                "finishesAtMs": critical_step.finishes_at,
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
        "location": location_text(node.location) or None,
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
        "reason": edge.reason.value,
        "strength": edge.strength.value,
        "location": location_text(edge.location) or None,
    }


def _edge_document(edge: GraphEdge, *, is_inverted: bool) -> JsonObject:
    return {
        "before": edge.before,
        "after": edge.after,
        "alternative": edge.alternative,
        "reason": edge.kind.value,
        "strength": edge.strength.value,
        "effect": edge.effect.value,
        "until": "absent" if edge.must_be_absent else edge.required_state.value,
        "field": format_path(edge.field) if edge.field else None,
        "through": _ref_document(edge.required_object),
        "key": edge.key or None,
        "keyMissing": edge.is_key_missing,
        "optional": edge.is_optional,
        "enforced": edge.is_enforced,
        "certain": edge.is_certain,
        "inverted": is_inverted,
        "location": location_text(edge.location) or None,
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
                "location": location_text(dependent.location) or None,
            }
            for dependent in dependency.dependents
        ],
    }


def _cycle_document(cycle: Cycle) -> Json:
    return [_wait_document(wait) for wait in cycle.links]


def _wait_document(wait: WaitLink) -> JsonObject:
    return {
        "waiter": wait.waiter,
        "why": wait.reason,
        "location": location_text(wait.location) or None,
        "node": wait.node,
        "edge": wait.edge,
    }
