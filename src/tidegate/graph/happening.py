"""What must have happened before what: the graph taken apart into moments.

    a step     begins                  when all steps before it are over
               is over                 when all its objects are applied, and those that gate ready
    an object  is applied              when its step has begun and nothing refuses it
               is ready                when it is applied and nothing holds it
               serves (a Service)      when it is applied and somebody answers
               is answered for         when one of its workloads is ready
    a want     is met                  when one of those that bring it has

Each moment waits for all that it needs; a want, and a Service's workloads, for any one. What can
happen is found by letting everything happen that can. What is left waits for itself.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.graph.reach import NodeStanding, StepReach, standing
from tidegate.model.graph import NOWHERE, Graph, GraphEdge, GraphNode, NodeKind, Tie
from tidegate.model.operators import Effect, Until

BEGUN, OVER, APPLIED, READY, SERVING, ANSWERED, MET, UNIT = range(8)
Moment = tuple[int, int]
"""What happens, and the number of the step, the node or the want that it happens to."""
SERVICE = ("", "Service")


class Moments(msgspec.Struct):
    """By moment, those it waits for, each with the edge or the order that says so."""

    all_of: dict[Moment, list[tuple[Moment, int | None]]] = msgspec.field(default_factory=dict)
    any_of: dict[Moment, list[tuple[Moment, int | None]]] = msgspec.field(default_factory=dict)

    def needs(self, moment: Moment) -> list[tuple[Moment, int | None]]:
        return self.all_of.get(moment) or self.any_of.get(moment) or []

    def stuck(self) -> set[Moment]:
        """The moments that never come."""
        behind: dict[Moment, list[Moment]] = {}
        unmet: dict[Moment, int] = {}
        for needs, single in ((self.all_of, False), (self.any_of, True)):
            for moment, others in needs.items():
                unmet[moment] = 1 if single and others else len(others)
                for other, _ in others:
                    behind.setdefault(other, []).append(moment)
        free = [moment for moment, count in unmet.items() if not count]
        free += [moment for moment in behind if moment not in unmet]
        for moment in free:  # it grows meanwhile
            for waiting in behind.get(moment, ()):
                unmet[waiting] -= 1
                if not unmet[waiting]:
                    free.append(waiting)
        return {moment for moment, count in unmet.items() if count > 0}


def take_apart(graph: Graph, *, lucky: bool = True) -> Moments:
    """The moments of a graph.

    A word that may be a host is none while no such Service is there: nobody waits for one that
    comes later. Who is `lucky` does not wait for objects that count as ready until somebody looks
    at them, where nobody may have in time.
    """
    found, reach = Moments(), StepReach(graph)
    for at, edge in enumerate(graph.edges):
        if edge.certain or not _comes_later(graph, reach, edge):
            _take_edge(graph, at, edge, found)
    unseen = unseen_in(graph, reach) if lucky else ()
    for step in graph.steps:
        found.all_of[BEGUN, step.number] = []
        over = found.all_of[OVER, step.number] = [((BEGUN, step.number), None)]
        for number in step.nodes:
            node = graph.nodes[number]
            waits = step.is_gated and node.gates and node.checked and number not in unseen
            over.append(((READY if waits else APPLIED, number), None))
    numbers = graph.step_numbers
    for link in graph.order:
        if link.before in numbers and link.after in numbers:
            begun = found.all_of[BEGUN, numbers[link.after]]
            begun.append(((OVER, numbers[link.before]), None))
    for node in graph.nodes:
        _take_node(node, found)
    return found


def unseen_in(graph: Graph, reach: StepReach) -> set[int]:
    """Objects that may count as ready before whoever serves their kind has looked at them.

    They do not where that one is ready before their step begins, and the step is not over at the
    first look: it is fenced, or something in it takes its time.
    """
    served: dict[int, bool] = {}
    for edge in graph.edges:
        if edge.tie is Tie.OPERATOR and graph.nodes[edge.after].unseen:
            is_there = _is_there(graph, reach, edge)
            served[edge.after] = served.get(edge.after, False) or is_there
    slow = {number: _takes_time(graph, number) for number in _steps_of(graph, served)}
    return {
        number
        for number, is_served in served.items()
        if not (is_served and slow.get(graph.nodes[number].step, False))
    }


def _steps_of(graph: Graph, nodes: Iterable[int]) -> set[int]:
    return {graph.nodes[one].step for one in nodes} - {NOWHERE}


def _takes_time(graph: Graph, number: int) -> bool:
    step = graph.steps[number]
    nodes = (graph.nodes[one] for one in step.nodes)
    return step.is_fenced or any(one.gates and one.checked and not one.unseen for one in nodes)


def _is_there(graph: Graph, reach: StepReach, edge: GraphEdge) -> bool:
    """Whether who serves a kind is ready before an object of it is applied."""
    server = graph.nodes[edge.before]
    if server.kind is NodeKind.OUTSIDE:
        return True
    is_before = standing(graph, reach, edge.before, edge.after) is NodeStanding.BEFORE
    return is_before and server.gates and server.checked and graph.steps[server.step].is_gated


def _comes_later(graph: Graph, reach: StepReach, edge: GraphEdge) -> bool:
    return standing(graph, reach, edge.before, edge.after) is NodeStanding.BEHIND


def _take_node(node: GraphNode, found: Moments) -> None:
    if node.kind is not NodeKind.OBJECT:
        return
    applied = found.all_of.setdefault((APPLIED, node.number), [])
    if node.step != NOWHERE:
        applied.append(((BEGUN, node.step), None))
    found.all_of.setdefault((READY, node.number), []).append(((APPLIED, node.number), None))
    is_service = node.ref is not None and (node.ref.kind.group, node.ref.kind.name) == SERVICE
    if is_service:
        serving = found.all_of[SERVING, node.number] = [((APPLIED, node.number), None)]
        if (ANSWERED, node.number) in found.any_of:
            serving.append(((ANSWERED, node.number), None))


def _take_edge(graph: Graph, at: int, edge: GraphEdge, found: Moments) -> None:
    before, after = graph.nodes[edge.before], graph.nodes[edge.after]
    if edge.optional or edge.absent or not edge.in_force:
        return
    if edge.tie is Tie.SELECTS:
        found.any_of.setdefault((ANSWERED, after.number), []).append(((READY, before.number), at))
    elif after.kind is NodeKind.UNIT:
        if edge.tie is Tie.DEPENDS_ON and before.kind is NodeKind.UNIT:
            waits = found.all_of.setdefault((UNIT, after.number), [])
            waits.append(((UNIT, before.number), at))
    elif edge.effect is not Effect.NOTHING:
        _take_want(before, at, edge, found)


def _take_want(before: GraphNode, at: int, edge: GraphEdge, found: Moments) -> None:
    """What an object cannot be applied or ready without; one that brings it is enough."""
    want = (MET, edge.want)
    if want not in found.any_of:
        moment = APPLIED if edge.effect is Effect.REFUSED else READY
        found.any_of[want] = []
        found.all_of.setdefault((moment, edge.after), []).append((want, at))
    if before.kind is NodeKind.OBJECT:
        found.any_of[want].append((_moment(edge, before), at))


def _moment(edge: GraphEdge, before: GraphNode) -> Moment:
    """What must have happened to whoever brings it."""
    number, ref = before.number, before.ref
    if edge.tie is Tie.DEFINITION:
        is_definition = ref is not None and ref.kind.name == "CustomResourceDefinition"
        return (APPLIED if is_definition else READY), number
    if edge.through is not None or edge.until is Until.READY:
        return READY, number
    if edge.until is Until.SERVING:
        is_service = ref is not None and (ref.kind.group, ref.kind.name) == SERVICE
        return (SERVING if is_service else READY), number
    return APPLIED, number
