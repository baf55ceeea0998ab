"""Ways through the graph: the one that takes longest, and the one that says why somebody waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidegate.model.graph import (
    NOWHERE,
    CriticalStep,
    Graph,
    GraphNode,
    NodeKind,
    Tie,
    WaitLink,
)
from tidegate.model.moment import Ms
from tidegate.model.plan import Edge
from tidegate.model.unit import UnitId

Took = Callable[[GraphNode], Ms]
"""How long an object takes to be ready, as far as that is known."""
Pause = Callable[[int], Ms]
"""The least time between a step and the next one of its unit, by the step's number."""


def critical_path(graph: Graph, took: Took, pause: Pause = lambda _: Ms(0)) -> list[CriticalStep]:
    """The steps that decide how long a rollout takes, in their order, each with what it waits for.

    Steps without objects are left out.
    """
    spans = [_span(graph, step, took) for step in range(len(graph.steps))]
    entering = _entering(graph)
    ends: list[int] = [0] * len(graph.steps)
    came: list[int] = [NOWHERE] * len(graph.steps)
    last = NOWHERE
    for step in _in_order(graph):
        for before in entering[step]:
            rest = pause(before) if _is_one_unit(graph, before, step) else 0
            if ends[before] + rest > ends[step] or came[step] == NOWHERE:
                ends[step], came[step] = max(ends[step], ends[before] + rest), before
        ends[step] += spans[step][0]
        last = step if last == NOWHERE or ends[step] >= ends[last] else last
    path: list[CriticalStep] = []
    while last != NOWHERE:
        span, slowest = spans[last]
        if graph.steps[last].nodes:
            path.append(CriticalStep(step=last, takes=span, until=Ms(ends[last]), slowest=slowest))
        last = came[last]
    return path[::-1]


def unit_spans(graph: Graph, took: Took, pause: Pause = lambda _: Ms(0)) -> dict[UnitId, Ms]:
    """By unit, how long its own steps take from the first to the last, as far as that is known."""
    ends: dict[UnitId, int] = {}
    for step in _in_order(graph):
        unit = graph.steps[step].unit
        rest = pause(step) if unit in ends else 0
        ends[unit] = ends.get(unit, 0) + rest + _span(graph, step, took)[0]
    return {unit: Ms(end) for unit, end in ends.items()}


def _is_one_unit(graph: Graph, before: int, after: int) -> bool:
    return graph.steps[before].unit == graph.steps[after].unit


def _span(graph: Graph, number: int, took: Took) -> tuple[Ms, int]:
    """How long a step takes, and the object that takes so long."""
    step = graph.steps[number]
    waited = [
        graph.nodes[one]
        for one in step.nodes
        if step.is_gated and graph.nodes[one].gates and graph.nodes[one].checked
    ]
    spans = [(took(one), -one.number) for one in waited]
    longest, node = max(spans, default=(Ms(0), -NOWHERE))
    return longest, -node


def _entering(graph: Graph) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in graph.steps]
    for step, others in enumerate(graph.behind):
        for one in others:
            found[one].append(step)
    return found


def _in_order(graph: Graph) -> Iterator[int]:
    unmet = [0] * len(graph.steps)
    for others in graph.behind:
        for one in others:
            unmet[one] += 1
    free = deque(step for step, count in enumerate(unmet) if not count)
    while free:
        step = free.popleft()
        yield step
        for one in graph.behind[step]:
            unmet[one] -= 1
            if not unmet[one]:
                free.append(one)


class _PathSpot(NamedTuple):
    """A node or a step on the way."""

    is_step: bool
    number: int


def why(graph: Graph, node: int, other: int) -> list[WaitLink]:
    """The shortest chain of waits from a node to another one; empty where there is none.

    A unit waits for what its steps wait for, and is waited for through them.
    """
    walk = _Why(graph, other)
    start = _PathSpot(False, node)
    came: dict[_PathSpot, tuple[_PathSpot, WaitLink | None]] = {}
    pending = deque([start])
    seen = {start}
    while pending:
        spot = pending.popleft()
        if spot != start and walk.is_there(spot):
            return _told(came, start, spot)
        for following, wait in walk.following(spot):
            if following not in seen:
                seen.add(following)
                came[following] = (spot, wait)
                pending.append(following)
    return []


def _told(
    came: dict[_PathSpot, tuple[_PathSpot, WaitLink | None]], start: _PathSpot, end: _PathSpot
) -> list[WaitLink]:
    waits: list[WaitLink] = []
    while end != start:
        end, wait = came[end]
        waits += [wait] if wait is not None else []
    return waits[::-1]


class _Why:
    """Where a chain of waits can go."""

    def __init__(self, graph: Graph, other: int) -> None:
        self._graph = graph
        self._other = graph.nodes[other]
        self._orders: dict[str, list[Edge]] = {}
        for edge in graph.order:
            self._orders.setdefault(edge.after, []).append(edge)
        self._firsts: dict[object, int] = {}
        for step in graph.steps:
            self._firsts.setdefault(step.unit, step.number)

    def is_there(self, spot: _PathSpot) -> bool:
        if not spot.is_step:
            return spot.number == self._other.number
        step = self._graph.steps[spot.number]
        if self._other.kind is NodeKind.UNIT:
            return step.unit == self._other.unit
        return self._other.number in step.nodes

    def following(self, spot: _PathSpot) -> Iterator[tuple[_PathSpot, WaitLink | None]]:
        return self._of_step(spot.number) if spot.is_step else self._of_node(spot.number)

    def _of_node(self, number: int) -> Iterator[tuple[_PathSpot, WaitLink | None]]:
        graph, node = self._graph, self._graph.nodes[number]
        for at in graph.needs[number]:
            edge = graph.edges[at]
            if edge.tie is not Tie.PARENT:
                before = graph.nodes[edge.before]
                through = f"{edge.through}, from {before.name}" if edge.through else before.name
                why = f"needs {through} ({edge.tie})"
                yield (
                    _PathSpot(False, edge.before),
                    WaitLink(who=node.name, why=why, where=edge.where, node=number, edge=at),
                )
        step = self._firsts.get(node.unit, NOWHERE) if node.kind is NodeKind.UNIT else node.step
        if step != NOWHERE:
            where = node.where
            said = f"is in {graph.steps[step].id}"
            wait = WaitLink(who=node.name, why=said, where=where, node=number, step=step)
            yield _PathSpot(True, step), None if node.kind is NodeKind.UNIT else wait

    def _of_step(self, number: int) -> Iterator[tuple[_PathSpot, WaitLink | None]]:
        graph, step = self._graph, self._graph.steps[number]
        for edge in self._orders.get(step.id, ()):
            before = graph.step_numbers.get(edge.before)
            if before is not None:
                where = f", {edge.where}" if edge.where else ""
                why = f"starts after {edge.before} ({edge.because}{where})"
                yield _PathSpot(True, before), WaitLink(who=step.id, why=why, step=number)
