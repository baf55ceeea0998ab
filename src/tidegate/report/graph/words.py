"""A graph in words: units with their waves, what their objects need, and what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.documents.document import path_text
from tidegate.errors import foreign
from tidegate.model.graph import (
    Circle,
    CriticalStep,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    MissingThing,
    NodeKind,
    Tie,
    WaitLink,
)
from tidegate.model.operators import Effect
from tidegate.model.plan import Because
from tidegate.model.unit import UnitId
from tidegate.report.graph.picture import GraphStory
from tidegate.report.places import seen_text, seen_within
from tidegate.report.rollout.names import count, fold, name_from, name_step, seconds

MOST_ASKERS = 3
Waves = dict[tuple[UnitId, UnitId], str]
QUIET = frozenset({Tie.NAMESPACE, Tie.DEFINITION, Tie.SELECTS})
"""Ties that are told only where nobody brings what is needed, or it comes too late."""


def graph_lines(story: GraphStory) -> Iterator[str]:
    """Units in the order in which they begin, then what cannot work, then what is missing."""
    graph = story.graph
    if story.waits is not None:
        yield from why_lines(story.waits)
        return
    if story.path is not None:
        yield from path_lines(graph, story.path)
        return
    waves = _waves(graph)
    steps: dict[UnitId, list[GraphStep]] = {}
    for step in graph.steps:
        steps.setdefault(step.unit, []).append(step)
    for name in (*steps, *(one for one in graph.units if one not in steps)):
        unit = graph.units.get(name)
        if unit is not None and story.is_shown(name):
            yield from _unit_lines(story, unit, steps.get(name, []), waves)
            yield ""
    yield from _found_lines(story)


def _unit_lines(
    story: GraphStory, unit: GraphNode, steps: list[GraphStep], waves: Waves
) -> Iterator[str]:
    graph = story.graph
    after = ", ".join(_after(graph, unit, waves))
    yield f"{unit.name}{': ' if after else ''}{after}"
    if unit.unit in graph.unread:
        yield "  (not all of its objects are known)"
    for step in steps:
        if step.nodes:
            yield f"  {name_step(step)}"
        for number in step.nodes:
            node = graph.nodes[number]
            yield f"    {node.name}{' (hook)' if node.hook else ''}"
            yield from _need_lines(story, node)


def _after(graph: Graph, unit: GraphNode, waves: Waves) -> Iterator[str]:
    for at in graph.needs[unit.number]:
        edge = graph.edges[at]
        other = graph.nodes[edge.before]
        own, there = unit.unit, other.unit
        name = name_from(own, there) if own and there else other.name
        if edge.tie is Tie.PARENT:
            wave = waves.get((own, there)) if own and there else None
            yield f"brought by {name}{f' in {wave}' if wave else ''}"
        elif edge.tie is Tie.DEPENDS_ON:
            yield f"after {name} ({edge.tie})"
        else:
            yield f"needs {name} ({edge.tie})"


def _waves(graph: Graph) -> Waves:
    """By unit and parent, the wave in which it begins, where waves order that."""
    found: Waves = {}
    for link in graph.order:
        if link.because is Because.PARENT:
            before, after = (
                graph.steps[graph.step_numbers[end]] for end in (link.before, link.after)
            )
            if not before.stage:
                found.setdefault((after.unit, before.unit), name_step(before))
    return found


def _need_lines(story: GraphStory, node: GraphNode) -> Iterator[str]:
    graph = story.graph
    for at in graph.needs[node.number]:
        edge = graph.edges[at]
        before = graph.nodes[edge.before]
        is_told = edge.tie not in QUIET or at in story.inverted
        if is_told and before.kind is not NodeKind.UNIT:
            yield f"      {_need(graph, edge, before, is_late=at in story.inverted)}"


def _need(graph: Graph, edge: GraphEdge, before: GraphNode, *, is_late: bool) -> str:
    what = f"{edge.through} from {before.name}" if edge.through else before.name
    notes = [str(edge.tie)]
    if edge.key:
        notes.append(f"{'port' if edge.tie is Tie.HOST else 'key'} {edge.key}")
    if edge.lacks_key:
        notes.append("which it has not got")
    if before.kind is NodeKind.OUTSIDE:
        notes.append("nobody brings it")
    elif is_late:
        notes.append(f"it comes later, in {_place(graph, before)}")
    if edge.optional:
        notes.append("optional")
    elif edge.effect is Effect.NOTHING:
        notes.append("it starts without")
    if not edge.in_force:
        notes.append("not obeyed here")
    return f"needs {what} ({', '.join(notes)})"


def _place(graph: Graph, node: GraphNode) -> str:
    return f"{name_step(graph.steps[node.step])} of {node.unit}"


def _found_lines(story: GraphStory) -> Iterator[str]:
    yield from circle_lines(story.circles)
    if story.circles:
        yield ""
    for wrong in story.graph.misread:
        node = story.graph.nodes[wrong.node]
        said = f"`{foreign(wrong.said)}` in `{wrong.annotation}` of {node.name}"
        yield f"{said} says nothing, {seen_text(node.where)}"
    if story.lacks:
        yield "nobody in the repository brings:"
        yield from (f"  {line}" for line in lack_lines(story.lacks))
    if story.graph.unread:
        yield ""
        units = story.graph.unread
        names = fold(map(str, units), len(units), MOST_ASKERS)
        yield f"some of it may come from {names}: not all of their objects are known"


def circle_lines(circles: Iterable[Circle]) -> Iterator[str]:
    """Each as a chain of sentences with places."""
    for circle in circles:
        yield "they wait for each other:"
        yield from (f"  {line}" for line in wait_lines(circle.waits))


def wait_lines(waits: Iterable[WaitLink]) -> Iterator[str]:
    for one in waits:
        yield f"{one.who} {seen_within(one.why)}{f', {seen_text(one.where)}' if one.where else ''}"


def why_lines(waits: Iterable[WaitLink]) -> Iterator[str]:
    lines = list(wait_lines(waits))
    yield from lines or ["it does not wait for it: neither by an order nor by a reference"]


def lack_lines(lacks: Iterable[MissingThing]) -> Iterator[str]:
    """Each with who needs it; where several do, each of them on a line."""
    for one in lacks:
        askers = [_asker(asker.name, asker.field, seen_text(asker.where)) for asker in one.askers]
        if len(askers) == 1:
            yield f"{one.name}: for {askers[0]}"
            continue
        yield f"{one.name}: for"
        yield from (f"  {asker}" for asker in askers[:MOST_ASKERS])
        if len(askers) > MOST_ASKERS:
            yield f"  and {len(askers) - MOST_ASKERS} more"


def _asker(name: str, field: tuple[str | int, ...], where: str) -> str:
    said = path_text(field) if field and field != ("kind",) else ""
    notes = ", ".join(part for part in (said, where) if part)
    return f"{name} ({notes})" if notes else name


def path_lines(graph: Graph, path: Iterable[CriticalStep]) -> Iterator[str]:
    """The steps that decide how long it takes, and what they wait for."""
    rows = [(one, graph.steps[one.step]) for one in path]
    if not rows:
        return
    names = [f"{step.unit}: {name_step(step)}" for _, step in rows]
    width = max(map(len, names))
    for name, (one, _) in zip(names, rows, strict=True):
        slow = graph.nodes[one.slowest].name if one.slowest >= 0 and one.takes else ""
        told = f"  {seconds(one.takes):>8}  until {seconds(one.until):>8}"
        yield f"{name:{width}}{told}{f'  {slow}' if slow else ''}".rstrip()
    yield f"{count(len(rows), 'step')}, about {seconds(rows[-1][0].until)} where nothing goes wrong"
