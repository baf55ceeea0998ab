"""Dependency cycles of a graph: the shortest cycle of each component, as sentences."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tidegate.documents.document import format_path
from tidegate.graph.milestones import (
    APPLIED,
    FINISHED,
    HAS_ENDPOINTS,
    READY,
    SATISFIED,
    STARTED,
    UNIT_READY,
    Milestone,
    Milestones,
    build_milestones,
)
from tidegate.model.plans.graph import Cycle, EdgeKind, Graph, GraphStep, NodeKind, WaitLink
from tidegate.model.plans.plan import EdgeReason
from tidegate.model.rollouts.names import PHASE_NAMES
from tidegate.model.units.unit import UnitId

WAIT_REASONS = {HAS_ENDPOINTS: "has endpoints only after {} is ready", UNIT_READY: "depends on {}"}
"""Reasons why one node waits for another."""
UNIT_END_STAGE = "end"
"""The last stage of a unit, without objects."""
UNIT_STAGES = frozenset({"rest", UNIT_END_STAGE})
"""Stages that are formatted as their unit."""
READY_WORDS = {"Application": "Healthy", "Kustomization": "Ready", "HelmRelease": "Ready"}
"""How Argo CD and Flux report a unit that is ready, by kind."""
MAX_STARTS = 100
"""Maximum number of milestones of a component at which the search for a cycle starts."""


def find_cycles(graph: Graph) -> tuple[Cycle, ...]:
    """Return one cycle for each component of milestones that wait for each other, or none."""
    milestones = build_milestones(graph)
    blocked = milestones.blocked()
    if not blocked:
        return ()
    components = _strong_components(milestones, blocked)
    return tuple(
        _readable_cycle(graph, _shortest_cycle(milestones, component)) for component in components
    )


def _strong_components(milestones: Milestones, blocked: set[Milestone]) -> Iterator[set[Milestone]]:
    """Yield the strongly connected components of the blocked milestones."""
    finder = _ComponentFinder(milestones, blocked)
    for start in sorted(blocked):
        for component in finder.components_from(start):
            milestone = next(iter(component))
            if len(component) > 1 or milestone in finder.prerequisites(milestone):
                yield component


class _ComponentFinder:
    """Tarjan's algorithm without recursion."""

    def __init__(self, milestones: Milestones, blocked: set[Milestone]) -> None:
        self._milestones = milestones
        self._blocked = blocked
        self._index: dict[Milestone, int] = {}
        self._low: dict[Milestone, int] = {}
        self._stack: dict[Milestone, None] = {}

    def prerequisites(self, milestone: Milestone) -> list[Milestone]:
        return [
            prerequisite
            for prerequisite, _ in self._milestones.prerequisites(milestone)
            if prerequisite in self._blocked
        ]

    def components_from(self, start: Milestone) -> Iterator[set[Milestone]]:
        """Yield the components that are completed on the way from an unvisited milestone."""
        if start in self._index:
            return
        path = [self._enter(start)]
        while path:
            milestone, remaining = path[-1]
            following = self._next_unvisited(milestone, remaining)
            if following is not None:
                path.append(self._enter(following))
                continue
            path.pop()
            if path:
                parent = path[-1][0]
                self._low[parent] = min(self._low[parent], self._low[milestone])
            if self._low[milestone] == self._index[milestone]:
                yield set(self._pop_component(milestone))

    def _enter(self, milestone: Milestone) -> tuple[Milestone, Iterator[Milestone]]:
        self._index[milestone] = self._low[milestone] = len(self._index)
        self._stack[milestone] = None
        return milestone, iter(self.prerequisites(milestone))

    def _next_unvisited(
        self, milestone: Milestone, remaining: Iterator[Milestone]
    ) -> Milestone | None:
        for prerequisite in remaining:
            if prerequisite not in self._index:
                return prerequisite
            if prerequisite in self._stack:
                self._low[milestone] = min(self._low[milestone], self._index[prerequisite])
        return None

    def _pop_component(self, last: Milestone) -> Iterator[Milestone]:
        while True:
            milestone, _ = self._stack.popitem()
            yield milestone
            if milestone == last:
                return


def _shortest_cycle(
    milestones: Milestones, component: set[Milestone]
) -> list[tuple[Milestone, int | None]]:
    """Return the shortest cycle: its milestones, each with the edge to the next one."""
    best: list[tuple[Milestone, int | None]] = []
    for start in sorted(component)[:MAX_STARTS]:
        cycle = _cycle_through(milestones, component, start, len(best) or len(component) + 1)
        if cycle:
            best = cycle
    return best


def _cycle_through(
    milestones: Milestones, component: set[Milestone], start: Milestone, max_length: int
) -> list[tuple[Milestone, int | None]]:
    previous: dict[Milestone, tuple[Milestone, int | None]] = {}
    pending = deque([(start, 0)])
    while pending:
        milestone, length = pending.popleft()
        if length + 1 >= max_length:
            return []
        for prerequisite, edge in milestones.prerequisites(milestone):
            if prerequisite not in component or prerequisite in previous:
                continue
            previous[prerequisite] = (milestone, edge)
            if prerequisite == start:
                return _trace_back(previous, start)
            pending.append((prerequisite, length + 1))
    return []


def _trace_back(
    previous: dict[Milestone, tuple[Milestone, int | None]], start: Milestone
) -> list[tuple[Milestone, int | None]]:
    milestone, edge = previous[start]
    path = [(milestone, edge)]
    while milestone != start:
        milestone, edge = previous[milestone]
        path.append((milestone, edge))
    return path[::-1]


def _readable_cycle(graph: Graph, path: list[tuple[Milestone, int | None]]) -> Cycle:
    """Return the cycle as sentences, without links between milestones of one node or step."""
    links = []
    for index, (milestone, edge) in enumerate(path):
        following = path[(index + 1) % len(path)][0]
        link = _wait_link(graph, milestone, following, edge)
        if link is not None:
            links.append(link)
    first = min(
        range(len(links)),
        key=lambda index: (not _is_requirement(graph, links[index]), links[index].waiter),
    )
    return Cycle((*links[first:], *links[:first]))


def _is_requirement(graph: Graph, link: WaitLink) -> bool:
    """Return whether a link is a requirement of a node, the best first link to show."""
    return link.edge is not None and graph.edges[link.edge].after == link.node


def _wait_link(
    graph: Graph, milestone: Milestone, following: Milestone, edge_index: int | None
) -> WaitLink | None:
    (event, number), (next_event, next_number) = milestone, following
    if event == SATISFIED:
        return _provider_link(graph, edge_index, next_event)
    if next_event == SATISFIED:
        return _requirement_link(graph, number, next_number, edge_index)
    if (event, next_event) == (STARTED, FINISHED):
        return _order_link(graph, graph.steps[number], graph.steps[next_number])
    if (event, next_event) == (FINISHED, READY):
        waiter, verb = format_waiting(graph.steps[number])
        reason = f"{verb} only after {graph.nodes[next_number].name} is ready"
        return WaitLink(waiter=waiter, reason=reason, step=number)
    if (event, next_event) == (APPLIED, STARTED):
        node, reason = graph.nodes[number], f"is applied in {format_step(graph.steps[next_number])}"
        return WaitLink(
            waiter=node.name, reason=reason, location=node.location, node=number, step=next_number
        )
    if event in WAIT_REASONS:
        node, dependency = graph.nodes[number], graph.nodes[next_number]
        edge = graph.edges[edge_index] if edge_index is not None else None
        location = edge.location if edge else node.location
        reason = WAIT_REASONS[event].format(dependency.name)
        return WaitLink(
            waiter=node.name, reason=reason, location=location, node=number, edge=edge_index
        )
    return None


def _requirement_link(
    graph: Graph, number: int, alternative: int, edge_index: int | None
) -> WaitLink:
    """Return the link from an object to the object that it refers to."""
    edges = [
        graph.edges[index]
        for index in graph.dependency_edges[number]
        if graph.edges[index].alternative == alternative
    ]
    edge, node = edges[0], graph.nodes[number]
    target = edge.required_object or graph.nodes[edge.before].ref
    target_name = str(target) if target else graph.nodes[edge.before].name
    suffix = f" ({format_path(edge.field)})" if edge.field else ""
    match edge.kind:
        case EdgeKind.NAMESPACE | EdgeKind.DEFINITION:
            reason = f"is rejected without {target_name}"
        case EdgeKind.OPERATOR:
            reason = (
                f"becomes ready only after its operator {graph.nodes[edge.before].name} is ready"
            )
        case EdgeKind.HOST:
            reason = f"calls {target_name}{suffix}"
        case _:
            reason = f"waits for {target_name}{suffix}"
    return WaitLink(
        waiter=node.name, reason=reason, location=node.location, node=number, edge=edge_index
    )


def _provider_link(graph: Graph, edge_index: int | None, next_event: int) -> WaitLink | None:
    """Return the link to the provider of a required object, or None if it is the object itself."""
    edge = graph.edges[edge_index] if edge_index is not None else None
    if edge is None or edge.required_object is None or edge.kind is EdgeKind.OPERATOR:
        return None
    node = graph.nodes[edge.before]
    if node.kind is not NodeKind.OBJECT or next_event not in (READY, APPLIED):
        return None
    reason = (
        f"is created after {node.name} is ready"
        if next_event == READY
        else f"is created by {node.name}"
    )
    return WaitLink(
        waiter=str(edge.required_object),
        reason=reason,
        location=node.location,
        node=edge.before,
        edge=edge_index,
    )


def _order_link(graph: Graph, step: GraphStep, before: GraphStep) -> WaitLink | None:
    edge = next(
        order_edge
        for order_edge in graph.order
        if order_edge.before == before.id and order_edge.after == step.id
    )
    if is_unit_end(step, before):
        return None
    edge_reason = (
        "" if edge.reason in (EdgeReason.WAVE, EdgeReason.PHASE, EdgeReason.STAGE) else edge.reason
    )
    suffix = f" ({edge_reason})" if edge_reason else ""
    waiter, verb = format_start(step)
    reason = f"{verb} only after {format_finish(before, reason=edge.reason)}{suffix}"
    return WaitLink(waiter=waiter, reason=reason, step=step.number)


def is_unit_end(step: GraphStep, before: GraphStep) -> bool:
    """Return whether a step is only the end of a unit without waves."""
    return step.stage == UNIT_END_STAGE and bool(before.stage) and step.unit == before.unit


def format_step(step: GraphStep, unit: str | None = None) -> str:
    """Format a step: `wave 2 of Application/argocd/shop`, `PreSync of Application/argocd/shop`.

    The main stage of a unit without waves is formatted as the unit. `unit` replaces the name of the
    unit; if it is empty, the unit is left out.
    """
    unit_name = str(step.unit) if unit is None else unit
    if step.stage in UNIT_STAGES:
        return unit_name
    if step.stage:
        name = f"stage {step.stage}"
    else:
        phase, wave = PHASE_NAMES.get(step.phase, step.phase), f"wave {step.wave}"
        name = wave if not phase else f"{phase} {wave}" if step.wave else phase
    return f"{name} of {unit_name}" if unit_name else name


def format_start(step: GraphStep, unit: str | None = None) -> tuple[str, str]:
    """Return subject and verb for the start of a step: `wave 2 of …`, `starts`.

    A unit becomes ready when its last stage starts.
    """
    verb = f"becomes {_ready_word(step.unit)}" if step.stage == UNIT_END_STAGE else "starts"
    return format_step(step, unit), verb


def format_waiting(step: GraphStep, unit: str | None = None) -> tuple[str, str]:
    """Return subject and verb for a step that cannot finish: `wave 2 of …`, `finishes`."""
    verb = f"becomes {_ready_word(step.unit)}" if step.stage in UNIT_STAGES else "finishes"
    return format_step(step, unit), verb


def format_finish(step: GraphStep, unit: str | None = None, *, reason: EdgeReason) -> str:
    """Return a clause for the end of a step: `Kustomization/flux-system/apps is Ready`."""
    unit_name = unit or str(step.unit)
    is_unit_ready = step.stage and reason is EdgeReason.DEPENDS_ON
    if step.stage == UNIT_END_STAGE or is_unit_ready:
        return f"{unit_name} is {_ready_word(step.unit)}"
    if step.stage in UNIT_STAGES:
        return f"stage {step.stage} of {unit_name} finishes"
    return f"{format_step(step, unit)} finishes"


def _ready_word(unit: UnitId) -> str:
    return READY_WORDS.get(unit.kind, "ready")
