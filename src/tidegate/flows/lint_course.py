"""Lookups for the lint rules: reachability of graph milestones, and locations of fields."""

from __future__ import annotations

from collections import deque

from tidegate.graph.circles import format_step
from tidegate.graph.happening import (
    APPLIED,
    FINISHED,
    READY,
    SATISFIED,
    SERVING,
    STARTED,
    Milestone,
    build_milestones,
)
from tidegate.lint.scene import WaitChain
from tidegate.model.graph import NO_STEP, Graph

NAMED_MILESTONES = frozenset({APPLIED, READY, SERVING})


class GraphReachability:
    """Milestones of a graph, and those that are never reached."""

    def __init__(self, graph: Graph, *, optimistic: bool = True) -> None:
        self._graph = graph
        self._milestones = build_milestones(graph, is_optimistic=optimistic)
        self._stuck = self._milestones.blocked()

    def step_starts(self, step: int) -> bool:
        return step == NO_STEP or (STARTED, step) not in self._stuck

    def is_met(self, requirement: int) -> bool:
        return (SATISFIED, requirement) not in self._stuck

    def wait_chain(self, requirement: int, step: int) -> WaitChain | None:
        """Return the shortest chain from a requirement to the end of a step, or None."""
        start, goal = (SATISFIED, requirement), (FINISHED, step)
        previous: dict[Milestone, tuple[Milestone, int | None]] = {}
        pending = deque([start])
        while pending:
            current = pending.popleft()
            for milestone, edge in self._milestones.prerequisites(current):
                if milestone not in self._stuck or milestone in previous:
                    continue
                previous[milestone] = (current, edge)
                if milestone == goal:
                    return self._build_chain(previous, start, goal)
                pending.append(milestone)
        return None

    def _build_chain(
        self,
        previous: dict[Milestone, tuple[Milestone, int | None]],
        start: Milestone,
        goal: Milestone,
    ) -> WaitChain:
        milestones, edges = [goal], list[int | None]()
        while milestones[-1] != start:
            predecessor, edge = previous[milestones[-1]]
            milestones.append(predecessor)
            edges.append(edge)
        first = edges[-1]
        at = first if first is not None else 0
        between = milestones[-2:0:-1]
        return WaitChain(
            at, tuple(self._describe_links(between, self._graph.edges[at].before)), len(milestones)
        )

    def _describe_links(self, milestones: list[Milestone], provider: int) -> list[str]:
        """Describe the links of a chain; the provider and its own step are named elsewhere."""
        links = []
        for milestone_type, number in milestones:
            if milestone_type in NAMED_MILESTONES and number != provider:
                links.append(f"{self._graph.nodes[number].name} is needed")
            elif milestone_type == FINISHED:
                links.append(f"{format_step(self._graph.steps[number])} must be over")
        return list(dict.fromkeys(links))
