"""Which steps come behind which, and so where two nodes stand to each other.

Steps of one unit are compared by their places. Between units, labels settle most questions at once:
each step has a few numbers from walks through the order, and who is not inside another's numbers is
not behind it. Only what they leave open is walked, and no further than they allow.
"""

from __future__ import annotations

from enum import StrEnum

from tidegate.model.graph import NOWHERE, Graph

WALKS = 3


class NodeStanding(StrEnum):
    """Where a node stands, seen from another one."""

    BEFORE = "before"
    """The other one starts when its step is over."""
    SAME = "same step"
    BESIDE = "beside"
    """Neither waits for the other."""
    BEHIND = "behind"
    """It starts when the step of the other one is over."""


class StepReach:
    """Answers for one graph; steps are known by their numbers."""

    def __init__(self, graph: Graph) -> None:
        self._behind = graph.behind
        self._order = _arrange(self._behind)
        self._rank = [0] * len(self._behind)
        for rank, step in enumerate(self._order):
            self._rank[step] = rank
        self._labels = [_label(self._order, self._behind, turned=turn) for turn in range(WALKS)]

    def is_behind(self, step: int, other: int) -> bool:
        """Whether a step starts only after another one is over."""
        if step == other or not self._may_reach(other, step):
            return False
        seen, pending = {other}, [other]
        while pending:
            for one in self._behind[pending.pop()]:
                if one == step:
                    return True
                if one not in seen and self._may_reach(one, step):
                    seen.add(one)
                    pending.append(one)
        return False

    def _may_reach(self, start: int, end: int) -> bool:
        if self._rank[start] >= self._rank[end]:
            return False
        return all(
            low[start] <= low[end] and high[end] <= high[start] for low, high in self._labels
        )


def standing(graph: Graph, reach: StepReach, node: int, other: int) -> NodeStanding:
    """Where a node stands, seen from another one; what no step writes stands beside."""
    mine, theirs = graph.nodes[node].step, graph.nodes[other].step
    if NOWHERE in (mine, theirs):
        return NodeStanding.BESIDE
    if mine == theirs:
        return NodeStanding.SAME
    if reach.is_behind(mine, theirs):
        return NodeStanding.BEHIND
    return NodeStanding.BEFORE if reach.is_behind(theirs, mine) else NodeStanding.BESIDE


def _arrange(behind: tuple[tuple[int, ...], ...]) -> list[int]:
    """The steps in an order that respects the edges; those in a circle come last."""
    unmet = [0] * len(behind)
    for others in behind:
        for one in others:
            unmet[one] += 1
    order = [step for step, count in enumerate(unmet) if not count]
    for step in order:  # it grows meanwhile
        for one in behind[step]:
            unmet[one] -= 1
            if not unmet[one]:
                order.append(one)
    placed = set(order)
    return [*order, *(step for step in range(len(behind)) if step not in placed)]


def _label(
    order: list[int], behind: tuple[tuple[int, ...], ...], *, turned: int
) -> tuple[list[int], list[int]]:
    """For each step the number at which a walk leaves it, and the least of all behind it.

    Whoever is behind a step has numbers inside its own. Walks that turn differently tell more.
    """
    high, low = [-1] * len(behind), [0] * len(behind)
    number = 0
    for start in order if turned % 2 == 0 else reversed(order):
        if high[start] != -1:
            continue
        stack = [(start, iter(_turned(behind[start], turned)))]
        high[start] = -2
        while stack:
            step, rest = stack[-1]
            following = next((one for one in rest if high[one] == -1), None)
            if following is not None:
                high[following] = -2
                stack.append((following, iter(_turned(behind[following], turned))))
                continue
            stack.pop()
            least = min((low[one] for one in behind[step] if high[one] >= 0), default=number)
            low[step], high[step] = min(least, number), number
            number += 1
    return low, high


def _turned(steps: tuple[int, ...], turned: int) -> tuple[int, ...]:
    return steps[::-1] if turned % 2 else steps[turned % 3 :] + steps[: turned % 3]
