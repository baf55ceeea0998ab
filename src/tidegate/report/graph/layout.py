"""Diagram of a dependency graph: units as boxes with waves, and arrows between them.

A diagram defines what is drawn, not how. The column of a box is after the columns of all boxes
that it waits for. Many objects of one kind are drawn as one item with their number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from tidegate.model.display_paths import location_text
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import (
    NO_STEP,
    EdgeKind,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    NodeKind,
)
from tidegate.model.rollouts.names import step_name
from tidegate.model.units.unit import Strength, UnitId
from tidegate.model.views.graph import GraphView

MAX_SINGLE_ITEMS = 8
"""Maximum number of objects of one kind in one wave that are drawn one by one."""
OUTSIDE = "outside"
MAX_OUTSIDE_ARROWS = 3
"""Maximum number of arrows from one outside object."""
HIDDEN_EDGE_KINDS = frozenset(
    {EdgeKind.NAMESPACE, EdgeKind.DEFINITION, EdgeKind.OPERATOR, EdgeKind.SELECTOR}
)
"""Kinds of edges that are drawn only if they are inverted, because there are too many of them."""


class DiagramItem(msgspec.Struct, frozen=True):
    """One line of a wave: an object, or several objects of one kind."""

    key: str
    label: str
    nodes: tuple[int, ...]
    location: str = ""


class DiagramWave(msgspec.Struct, frozen=True):
    label: str
    items: tuple[DiagramItem, ...]


class DiagramBox(msgspec.Struct):
    """A unit, or the objects outside the repository."""

    key: str
    label: str
    column: int
    """Position of the column from the left."""
    waves: tuple[DiagramWave, ...]
    location: str = ""
    is_critical: bool = False
    unit: UnitId | None = None

    @property
    def items(self) -> Iterator[DiagramItem]:
        return (item for wave in self.waves for item in wave.items)


class DiagramArrow(msgspec.Struct, frozen=True):
    """An arrow between two boxes or items, given by key."""

    before: str
    after: str
    label: str
    strength: Strength
    is_inverted: bool = False
    is_parent: bool = False
    title: str = ""


class Diagram(msgspec.Struct):
    boxes: list[DiagramBox] = msgspec.field(default_factory=list)
    arrows: list[DiagramArrow] = msgspec.field(default_factory=list)


def build_diagram(view: GraphView) -> Diagram:
    """Return the diagram of a graph."""
    graph = view.graph
    columns = _step_columns(graph)
    critical = {graph.steps[critical_step.step].unit for critical_step in view.critical_path or ()}
    diagram = Diagram()
    item_keys: dict[int, str] = {}
    boxes: dict[UnitId, str] = {}
    steps: dict[UnitId, list[GraphStep]] = {}
    for step in graph.steps:
        steps.setdefault(step.unit, []).append(step)
    for number, unit in enumerate(graph.unit_nodes.values()):
        unit_id = unit.unit
        if unit_id is None or not view.is_shown(unit_id):
            continue
        key = boxes[unit_id] = f"u{number}"
        waves = tuple(_diagram_waves(graph, steps.get(unit_id, []), key, item_keys))
        column = min(
            (columns[graph_step.number] for graph_step in steps.get(unit_id, [])), default=0
        )
        location = location_text(unit.location)
        box = DiagramBox(key, unit.name, column, waves, location, unit_id in critical, unit_id)
        diagram.boxes.append(box)
    outside = _outside_box(graph, view, item_keys)
    if outside is not None:
        diagram.boxes.insert(0, outside)
    _compact_columns(diagram.boxes)
    diagram.arrows += _unit_arrows(graph, boxes)
    diagram.arrows += _object_arrows(view, item_keys)
    return diagram


def _step_columns(graph: Graph) -> list[int]:
    """Return for each step the number of unit changes on the longest path to it."""
    columns = [0] * len(graph.steps)
    open_predecessors = [0] * len(graph.steps)
    for successors in graph.next_steps:
        for successor in successors:
            open_predecessors[successor] += 1
    ready = [step for step, count in enumerate(open_predecessors) if not count]
    for step in ready:  # grows during the loop
        for successor in graph.next_steps[step]:
            is_other_unit = graph.steps[step].unit != graph.steps[successor].unit
            columns[successor] = max(columns[successor], columns[step] + is_other_unit)
            open_predecessors[successor] -= 1
            if not open_predecessors[successor]:
                ready.append(successor)
    return columns


def _compact_columns(boxes: Iterable[DiagramBox]) -> None:
    boxes = list(boxes)
    ranks = {column: rank for rank, column in enumerate(sorted({box.column for box in boxes}))}
    for box in boxes:
        box.column = ranks[box.column]


def _diagram_waves(
    graph: Graph, steps: Iterable[GraphStep], key: str, item_keys: dict[int, str]
) -> Iterator[DiagramWave]:
    """Yield the waves of a unit. Steps of the same name are one wave."""
    waves: dict[str, list[GraphNode]] = {}
    for step in steps:
        label = step_name(step).partition(" part ")[0]
        waves.setdefault(label, []).extend(graph.nodes[number] for number in step.nodes)
    for label, nodes in waves.items():
        items = tuple(_diagram_items(nodes, key, item_keys))
        if items:
            yield DiagramWave(label, items)


def _diagram_items(
    nodes: list[GraphNode], key: str, item_keys: dict[int, str]
) -> Iterator[DiagramItem]:
    kinds: dict[str, list[GraphNode]] = {}
    for node in nodes:
        kinds.setdefault(node.ref.kind.name if node.ref else node.name, []).append(node)
    for kind, kind_nodes in kinds.items():
        if len(kind_nodes) > MAX_SINGLE_ITEMS:
            name = f"{key}n{kind_nodes[0].number}"
            item_keys |= {node.number: name for node in kind_nodes}
            yield DiagramItem(
                name,
                f"{kind} ({len(kind_nodes):,} objects)",
                tuple(node.number for node in kind_nodes),
            )
            continue
        for node in kind_nodes:
            item_keys[node.number] = f"{key}n{node.number}"
            label = f"{node.name}{' (hook)' if node.is_hook else ''}"
            yield DiagramItem(
                item_keys[node.number], label, (node.number,), location_text(node.location)
            )


def _outside_box(graph: Graph, view: GraphView, item_keys: dict[int, str]) -> DiagramBox | None:
    groups: dict[str, list[GraphNode]] = {}
    for missing in view.missing:
        node = graph.nodes[missing.node]
        dependents = (graph.nodes[dependent.node] for dependent in missing.dependents)
        if node.kind is NodeKind.EXTERNAL and any(
            view.is_shown(dependent_node.unit) for dependent_node in dependents
        ):
            groups.setdefault(missing.type, []).append(node)
    waves = tuple(
        DiagramWave(str(kind), tuple(_diagram_items(nodes, OUTSIDE, item_keys)))
        for kind, nodes in groups.items()
    )
    if not waves:
        return None
    return DiagramBox(OUTSIDE, "not in this repository", -1, waves)


def _unit_arrows(graph: Graph, boxes: dict[UnitId, str]) -> Iterator[DiagramArrow]:
    """Yield one arrow for each reason between two units."""
    seen: set[tuple[str, str, str]] = set()
    steps = {step.id: step for step in graph.steps}
    parents = {(edge.before, edge.after) for edge in graph.edges if edge.kind is EdgeKind.PARENT}
    numbers = {name: node.number for name, node in graph.unit_nodes.items()}
    for edge in graph.edges:
        before, after = graph.nodes[edge.before], graph.nodes[edge.after]
        ends = (boxes.get(before.unit or _NO_UNIT), boxes.get(after.unit or _NO_UNIT))
        if after.kind is not NodeKind.UNIT or None in ends or before.kind is not NodeKind.UNIT:
            continue
        key = (str(ends[0]), str(ends[1]), str(edge.kind))
        if key not in seen:
            seen.add(key)
            label = "" if edge.kind is EdgeKind.PARENT else str(edge.kind)
            yield DiagramArrow(
                key[0],
                key[1],
                label,
                Strength.HARD,
                is_parent=edge.kind is EdgeKind.PARENT,
                title=location_text(edge.location),
            )
    for link in graph.order:
        first, second = steps.get(link.before), steps.get(link.after)
        if first is None or second is None or first.unit == second.unit:
            continue
        ends = (boxes.get(first.unit), boxes.get(second.unit))
        pair = (numbers.get(first.unit, NO_STEP), numbers.get(second.unit, NO_STEP))
        if None in ends or pair in parents or pair[::-1] in parents:
            continue
        key = (str(ends[0]), str(ends[1]), str(link.reason))
        if key not in seen:
            seen.add(key)
            yield DiagramArrow(
                key[0], key[1], key[2], link.strength, title=location_text(link.location)
            )


_NO_UNIT = UnitId("", "", "", "")


def _object_arrows(view: GraphView, item_keys: dict[int, str]) -> Iterator[DiagramArrow]:
    graph = view.graph
    seen: set[tuple[str, str]] = set()
    for index, edge in enumerate(graph.edges):
        ends = (item_keys.get(edge.before), item_keys.get(edge.after))
        if None in ends or ends[0] == ends[1] or graph.nodes[edge.after].kind is NodeKind.UNIT:
            continue
        is_inverted = index in view.inverted_edges
        key = (str(ends[0]), str(ends[1]))
        if key in seen or not (is_inverted or _is_visible(graph, edge)):
            continue
        seen.add(key)
        yield DiagramArrow(
            key[0],
            key[1],
            str(edge.required_object) if edge.required_object else "",
            edge.strength,
            is_inverted=is_inverted,
            title=edge_text(graph, edge),
        )


def _is_visible(graph: Graph, edge: GraphEdge) -> bool:
    """Return whether an edge is drawn: only edges that change the order are."""
    before = graph.nodes[edge.before]
    if before.kind is NodeKind.EXTERNAL:
        return (
            edge.kind not in HIDDEN_EDGE_KINDS
            and len(graph.dependent_edges[before.number]) <= MAX_OUTSIDE_ARROWS
        )
    return edge.kind not in HIDDEN_EDGE_KINDS and (
        edge.effect is not Effect.NONE or edge.kind is EdgeKind.HOST
    )


def edge_text(graph: Graph, edge: GraphEdge) -> str:
    """Return an edge as text: `Job shop/migrate needs Secret shop/db (reference)`."""
    before, after = graph.nodes[edge.before], graph.nodes[edge.after]
    requirement = (
        f"{edge.required_object} from {before.name}" if edge.required_object else before.name
    )
    return f"{after.name} needs {requirement} ({edge.kind})"


def visible_nodes(graph: Graph, units: Collection[UnitId] | None) -> Iterator[GraphNode]:
    """Yield the nodes of some units, and the nodes that they need."""
    if units is None:
        yield from graph.nodes
        return
    selected = {node.number for node in graph.nodes if node.unit in units}
    needed = {edge.before for edge in graph.edges if edge.after in selected}
    yield from (node for node in graph.nodes if node.number in selected or node.number in needed)
