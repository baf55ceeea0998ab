"""What comes about and what never does, as rules ask for it."""

from __future__ import annotations

from collections import deque

from tidegate.graph.circles import name_of_step
from tidegate.graph.happening import APPLIED, BEGUN, MET, OVER, READY, SERVING, Moment, take_apart
from tidegate.lint.scene import WantWay
from tidegate.model.graph import NOWHERE, Graph

TOLD = frozenset({APPLIED, READY, SERVING})


class GraphCourse:
    """The moments of a graph, and those of them that never come."""

    def __init__(self, graph: Graph, *, lucky: bool = True) -> None:
        self._graph = graph
        self._happening = take_apart(graph, lucky=lucky)
        self._stuck = self._happening.stuck()

    def starts(self, step: int) -> bool:
        return step == NOWHERE or (BEGUN, step) not in self._stuck

    def meets(self, want: int) -> bool:
        return (MET, want) not in self._stuck

    def way(self, want: int, step: int) -> WantWay | None:
        """The shortest chain from what is wanted to the end of a step, where it waits for that."""
        start, goal = (MET, want), (OVER, step)
        came: dict[Moment, tuple[Moment, int | None]] = {}
        pending = deque([start])
        while pending:
            one = pending.popleft()
            for need, edge in self._happening.needs(one):
                if need not in self._stuck or need in came:
                    continue
                came[need] = (one, edge)
                if need == goal:
                    return self._way(came, start, goal)
                pending.append(need)
        return None

    def _way(
        self, came: dict[Moment, tuple[Moment, int | None]], start: Moment, goal: Moment
    ) -> WantWay:
        moments, edges = [goal], list[int | None]()
        while moments[-1] != start:
            before, edge = came[moments[-1]]
            moments.append(before)
            edges.append(edge)
        first = edges[-1]
        at = first if first is not None else 0
        between = moments[-2:0:-1]
        return WantWay(at, tuple(self._words(between, self._graph.edges[at].before)), len(moments))

    def _words(self, moments: list[Moment], maker: int) -> list[str]:
        """What stands between; who brings it, and its own step, are told already."""
        told = []
        for what, number in moments:
            if what in TOLD and number != maker:
                told.append(f"{self._graph.nodes[number].name} is needed")
            elif what == OVER:
                told.append(f"{name_of_step(self._graph.steps[number])} must be over")
        return list(dict.fromkeys(told))
