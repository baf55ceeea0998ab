"""Paths through the graph: the critical path, and the shortest chain that explains a wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidegate.graph.cycles import format_finish, format_start, format_step, is_unit_end
from tidegate.model.plans.graph import (
    NO_STEP,
    CriticalStep,
    EdgeKind,
    Graph,
    GraphNode,
    NodeKind,
    WaitLink,
)
from tidegate.model.plans.plan import Edge
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId

DurationLookup = Callable[[GraphNode], Ms]
"""Returns the known time until an object is ready."""
DelayLookup = Callable[[int], Ms]
"""Returns the minimum delay between a step, by number, and the next step of its unit."""


def find_critical_path(
    graph: Graph, duration_of: DurationLookup, delay_after: DelayLookup = lambda _: Ms(0)
) -> list[CriticalStep]:
    """Return the steps that determine the duration of a rollout, in order.

    Steps without objects are not included.
    """
    durations = [_step_duration(graph, step, duration_of) for step in range(len(graph.steps))]
    incoming = _incoming_steps(graph)
    ends: list[int] = [0] * len(graph.steps)
    previous: list[int] = [NO_STEP] * len(graph.steps)
    last = NO_STEP
    for step in _topological_order(graph):
        for before in incoming[step]:
            delay = delay_after(before) if _is_one_unit(graph, before, step) else 0
            if ends[before] + delay > ends[step] or previous[step] == NO_STEP:
                ends[step], previous[step] = max(ends[step], ends[before] + delay), before
        ends[step] += durations[step][0]
        last = step if last == NO_STEP or ends[step] >= ends[last] else last
    path: list[CriticalStep] = []
    while last != NO_STEP:
        duration, slowest = durations[last]
        if graph.steps[last].nodes:
            path.append(
                CriticalStep(
                    step=last, duration=duration, finishes_at=Ms(ends[last]), slowest_node=slowest
                )
            )
        last = previous[last]
    return path[::-1]


def unit_durations(
    graph: Graph, duration_of: DurationLookup, delay_after: DelayLookup = lambda _: Ms(0)
) -> dict[UnitId, Ms]:
    """Return the known duration of each unit, from its first to its last step."""
    ends: dict[UnitId, int] = {}
    for step in _topological_order(graph):
        unit = graph.steps[step].unit
        delay = delay_after(step) if unit in ends else 0
        ends[unit] = ends.get(unit, 0) + delay + _step_duration(graph, step, duration_of)[0]
    return {unit: Ms(end) for unit, end in ends.items()}


def _is_one_unit(graph: Graph, before: int, after: int) -> bool:
    return graph.steps[before].unit == graph.steps[after].unit


def _step_duration(graph: Graph, number: int, duration_of: DurationLookup) -> tuple[Ms, int]:
    """Return the duration of a step, and the number of its slowest object."""
    step = graph.steps[number]
    gating_nodes = [
        graph.nodes[node_number]
        for node_number in step.nodes
        if step.is_gated
        and graph.nodes[node_number].is_gating
        and graph.nodes[node_number].has_health_check
    ]
    durations = [(duration_of(gating_node), -gating_node.number) for gating_node in gating_nodes]
    longest, node = max(durations, default=(Ms(0), -NO_STEP))
    return longest, -node


def _incoming_steps(graph: Graph) -> list[list[int]]:
    incoming: list[list[int]] = [[] for _ in graph.steps]
    for step, others in enumerate(graph.next_steps):
        for next_step in others:
            incoming[next_step].append(step)
    return incoming


def _topological_order(graph: Graph) -> Iterator[int]:
    open_counts = [0] * len(graph.steps)
    for others in graph.next_steps:
        for next_step in others:
            open_counts[next_step] += 1
    ready = deque(step for step, count in enumerate(open_counts) if not count)
    while ready:
        step = ready.popleft()
        yield step
        for next_step in graph.next_steps[step]:
            open_counts[next_step] -= 1
            if not open_counts[next_step]:
                ready.append(next_step)


class _PathPoint(NamedTuple):
    """A node or a step of a path."""

    is_step: bool
    number: int


def explain_wait(graph: Graph, node: int, other: int) -> list[WaitLink]:
    """Return the shortest chain of waits from a node to another, or [] if there is none.

    A unit waits through its steps, and others wait for its steps.
    """
    search = _WaitSearch(graph, other)
    start = _PathPoint(False, node)
    previous: dict[_PathPoint, tuple[_PathPoint, WaitLink | None]] = {}
    pending = deque([start])
    seen = {start}
    while pending:
        point = pending.popleft()
        if point != start and search.is_target(point):
            return _trace_back(previous, start, point)
        for next_point, link in search.next_points(point):
            if next_point not in seen:
                seen.add(next_point)
                previous[next_point] = (point, link)
                pending.append(next_point)
    return []


def _trace_back(
    previous: dict[_PathPoint, tuple[_PathPoint, WaitLink | None]],
    start: _PathPoint,
    end: _PathPoint,
) -> list[WaitLink]:
    links: list[WaitLink] = []
    while end != start:
        end, link = previous[end]
        links += [link] if link is not None else []
    return links[::-1]


class _WaitSearch:
    """The possible next points of a chain of waits."""

    def __init__(self, graph: Graph, target: int) -> None:
        self._graph = graph
        self._target = graph.nodes[target]
        self._incoming: dict[str, list[Edge]] = {}
        for edge in graph.order:
            self._incoming.setdefault(edge.after, []).append(edge)
        self._first_steps: dict[object, int] = {}
        for step in graph.steps:
            self._first_steps.setdefault(step.unit, step.number)

    def is_target(self, point: _PathPoint) -> bool:
        if not point.is_step:
            return point.number == self._target.number
        step = self._graph.steps[point.number]
        if self._target.kind is NodeKind.UNIT:
            return step.unit == self._target.unit
        return self._target.number in step.nodes

    def next_points(self, point: _PathPoint) -> Iterator[tuple[_PathPoint, WaitLink | None]]:
        return (
            self._points_after_step(point.number)
            if point.is_step
            else self._points_after_node(point.number)
        )

    def _points_after_node(self, number: int) -> Iterator[tuple[_PathPoint, WaitLink | None]]:
        graph, node = self._graph, self._graph.nodes[number]
        for index in graph.dependency_edges[number]:
            edge = graph.edges[index]
            if edge.kind is not EdgeKind.PARENT:
                before = graph.nodes[edge.before]
                provider = (
                    f"{edge.required_object} from {before.name}"
                    if edge.required_object
                    else before.name
                )
                reason = f"needs {provider} ({edge.kind})"
                yield (
                    _PathPoint(False, edge.before),
                    WaitLink(
                        waiter=node.name,
                        reason=reason,
                        location=edge.location,
                        node=number,
                        edge=index,
                    ),
                )
        step = (
            self._first_steps.get(node.unit, NO_STEP) if node.kind is NodeKind.UNIT else node.step
        )
        if step != NO_STEP:
            location = node.location
            position = f"is applied in {format_step(graph.steps[step])}"
            link = WaitLink(
                waiter=node.name, reason=position, location=location, node=number, step=step
            )
            yield _PathPoint(True, step), None if node.kind is NodeKind.UNIT else link

    def _points_after_step(self, number: int) -> Iterator[tuple[_PathPoint, WaitLink | None]]:
        graph, step = self._graph, self._graph.steps[number]
        for edge in self._incoming.get(step.id, ()):
            before = graph.step_numbers.get(edge.before)
            if before is not None:
                location = f", {edge.location}" if edge.location else ""
                waiter, verb = format_start(step)
                finish = format_finish(graph.steps[before], reason=edge.reason)
                reason = f"{verb} only after {finish} ({edge.reason}{location})"
                link = WaitLink(waiter=waiter, reason=reason, step=number)
                is_end = is_unit_end(step, graph.steps[before])
                yield _PathPoint(True, before), None if is_end else link
