"""Milestones of a graph, and the order between them.

    a step     starts                  when all steps before it are finished
               is finished             when its objects are applied, and the gating ones ready
    an object  is applied              when its step has started and nothing rejects it
               is ready                when it is applied and nothing blocks it
               serves (a Service)      when it is applied and has endpoints
               has endpoints           when one of its workloads is ready
    a requirement  is satisfied        when one of its providers is

Each milestone waits for all its prerequisites; a requirement, and the endpoints of a Service, for
any one. Milestones are resolved until no further one can be reached. The others are blocked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain

import msgspec

from tidegate.graph.reachability import RelativePosition, StepReachability, relative_position
from tidegate.model.operators.rows import Effect, RequiredState
from tidegate.model.plans.graph import NO_STEP, EdgeKind, Graph, GraphEdge, GraphNode, NodeKind

STARTED, FINISHED, APPLIED, READY, SERVING, HAS_ENDPOINTS, SATISFIED, UNIT_READY = range(8)
Milestone = tuple[int, int]
"""An event, and the number of its step, node or requirement."""
SERVICE_KIND = ("", "Service")


class Milestones(msgspec.Struct):
    """Prerequisites by milestone, each with the index of its edge."""

    all_of: dict[Milestone, list[tuple[Milestone, int | None]]] = msgspec.field(
        default_factory=dict
    )
    """Milestones that wait for all prerequisites."""
    any_of: dict[Milestone, list[tuple[Milestone, int | None]]] = msgspec.field(
        default_factory=dict
    )
    """Milestones that wait for one prerequisite."""

    def prerequisites(self, milestone: Milestone) -> list[tuple[Milestone, int | None]]:
        return self.all_of.get(milestone) or self.any_of.get(milestone) or []

    def blocked(self, reached_anyway: Collection[Milestone] = ()) -> set[Milestone]:
        """Return the milestones that are never reached, if some are reached unconditionally."""
        open_counts = {milestone: len(required) for milestone, required in self.all_of.items()}
        open_counts |= {milestone: min(len(any_), 1) for milestone, any_ in self.any_of.items()}
        dependents = self._list_dependents()
        for milestone in reached_anyway:
            open_counts[milestone] = 0
        reached = [milestone for milestone, count in open_counts.items() if not count]
        reached += [milestone for milestone in dependents if milestone not in open_counts]
        for milestone in reached:  # grows during the loop
            for dependent in dependents.get(milestone, ()):
                open_counts[dependent] -= 1
                if not open_counts[dependent]:
                    reached.append(dependent)
        return {milestone for milestone, count in open_counts.items() if count > 0}

    def _list_dependents(self) -> dict[Milestone, list[Milestone]]:
        """Return the milestones that wait for each milestone."""
        dependents: dict[Milestone, list[Milestone]] = {}
        for milestone, required in chain(self.all_of.items(), self.any_of.items()):
            for prerequisite, _ in required:
                dependents.setdefault(prerequisite, []).append(milestone)
        return dependents


def build_milestones(graph: Graph, *, is_optimistic: bool = True) -> Milestones:
    """Return the milestones of a graph.

    A word that may be a host name is one only if its Service is not deployed later. With
    `is_optimistic`, objects that are ready without a status are not awaited if their operator may
    not write a status in time.
    """
    milestones, reachability = Milestones(), StepReachability(graph)
    for index, edge in enumerate(graph.edges):
        if edge.is_certain or not _is_later(graph, reachability, edge):
            _add_edge(graph, index, edge, milestones)
    ready_without_status = find_ready_without_status(graph, reachability) if is_optimistic else ()
    for step in graph.steps:
        milestones.all_of[STARTED, step.number] = []
        finished = milestones.all_of[FINISHED, step.number] = [((STARTED, step.number), None)]
        for number in step.nodes:
            node = graph.nodes[number]
            must_be_ready = (
                step.is_gated
                and node.is_gating
                and node.has_health_check
                and number not in ready_without_status
            )
            finished.append(((READY if must_be_ready else APPLIED, number), None))
    numbers = graph.step_numbers
    for order_edge in graph.order:
        if order_edge.before in numbers and order_edge.after in numbers:
            started = milestones.all_of[STARTED, numbers[order_edge.after]]
            started.append(((FINISHED, numbers[order_edge.before]), None))
    for node in graph.nodes:
        _add_node(node, milestones)
    return milestones


def find_ready_without_status(graph: Graph, reachability: StepReachability) -> set[int]:
    """Return objects that may be ready before their operator has written a status.

    An object is not among them if its operator is ready before its step starts and the step does
    not finish at the first check, because it is fenced or another object in it takes time.
    """
    served: dict[int, bool] = {}
    for edge in graph.edges:
        if edge.kind is EdgeKind.OPERATOR and graph.nodes[edge.after].ready_without_status:
            is_operator_ready = _is_operator_ready(graph, reachability, edge)
            served[edge.after] = served.get(edge.after, False) or is_operator_ready
    takes_time = {number: _takes_time(graph, number) for number in _step_numbers(graph, served)}
    return {
        number
        for number, is_served in served.items()
        if not (is_served and takes_time.get(graph.nodes[number].step, False))
    }


def _step_numbers(graph: Graph, nodes: Iterable[int]) -> set[int]:
    return {graph.nodes[number].step for number in nodes} - {NO_STEP}


def _takes_time(graph: Graph, number: int) -> bool:
    step = graph.steps[number]
    nodes = (graph.nodes[node_number] for node_number in step.nodes)
    return step.is_fenced or any(
        node.is_gating and node.has_health_check and not node.ready_without_status for node in nodes
    )


def _is_operator_ready(graph: Graph, reachability: StepReachability, edge: GraphEdge) -> bool:
    """Return whether the operator of a kind is ready before an object of the kind is applied."""
    operator = graph.nodes[edge.before]
    if operator.kind is NodeKind.EXTERNAL:
        return True
    is_before = (
        relative_position(graph, reachability, edge.before, edge.after) is RelativePosition.BEFORE
    )
    return (
        is_before
        and operator.is_gating
        and operator.has_health_check
        and graph.steps[operator.step].is_gated
    )


def _is_later(graph: Graph, reachability: StepReachability, edge: GraphEdge) -> bool:
    return relative_position(graph, reachability, edge.before, edge.after) is RelativePosition.AFTER


def _add_node(node: GraphNode, milestones: Milestones) -> None:
    if node.kind is not NodeKind.OBJECT:
        return
    applied = milestones.all_of.setdefault((APPLIED, node.number), [])
    if node.step != NO_STEP:
        applied.append(((STARTED, node.step), None))
    milestones.all_of.setdefault((READY, node.number), []).append(((APPLIED, node.number), None))
    is_service = node.ref is not None and (node.ref.kind.group, node.ref.kind.name) == SERVICE_KIND
    if is_service:
        serving = milestones.all_of[SERVING, node.number] = [((APPLIED, node.number), None)]
        if (HAS_ENDPOINTS, node.number) in milestones.any_of:
            serving.append(((HAS_ENDPOINTS, node.number), None))


def _add_edge(graph: Graph, index: int, edge: GraphEdge, milestones: Milestones) -> None:
    before, after = graph.nodes[edge.before], graph.nodes[edge.after]
    if edge.is_optional or edge.must_be_absent or not edge.is_enforced:
        return
    if edge.kind is EdgeKind.SELECTOR:
        milestones.any_of.setdefault((HAS_ENDPOINTS, after.number), []).append(
            ((READY, before.number), index)
        )
    elif after.kind is NodeKind.UNIT:
        if edge.kind is EdgeKind.DEPENDS_ON and before.kind is NodeKind.UNIT:
            prerequisites = milestones.all_of.setdefault((UNIT_READY, after.number), [])
            prerequisites.append(((UNIT_READY, before.number), index))
    elif edge.effect is not Effect.NONE:
        _add_requirement(before, index, edge, milestones)


def _add_requirement(
    before: GraphNode, index: int, edge: GraphEdge, milestones: Milestones
) -> None:
    """Add a requirement of an object for being applied or ready; one provider is enough."""
    requirement = (SATISFIED, edge.alternative)
    if requirement not in milestones.any_of:
        event = APPLIED if edge.effect is Effect.REJECTED else READY
        milestones.any_of[requirement] = []
        milestones.all_of.setdefault((event, edge.after), []).append((requirement, index))
    if before.kind is NodeKind.OBJECT:
        milestones.any_of[requirement].append((_provider_milestone(edge, before), index))


def _provider_milestone(edge: GraphEdge, before: GraphNode) -> Milestone:
    """Return the milestone that a provider must reach."""
    number, ref = before.number, before.ref
    if edge.kind is EdgeKind.DEFINITION:
        is_definition = ref is not None and ref.kind.name == "CustomResourceDefinition"
        return (APPLIED if is_definition else READY), number
    if edge.required_object is not None or edge.required_state is RequiredState.READY:
        return READY, number
    if edge.required_state is RequiredState.SERVING:
        is_service = ref is not None and (ref.kind.group, ref.kind.name) == SERVICE_KIND
        return (SERVING if is_service else READY), number
    return APPLIED, number
