"""Reachability of steps, and the relative position of two nodes.

Interval labels answer most queries directly: each step has a few numbers from depth-first walks
through the order, and a step outside the interval of another one is not after it. Only the
remaining cases are searched, and no further than the labels allow.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

from tidegate.model.plans.graph import NO_STEP, Graph

LABEL_COUNT = 3


class RelativePosition(StrEnum):
    """The position of a node relative to another node."""

    BEFORE = "before"
    """The other node starts when the step of the node is finished."""
    SAME = "same step"
    PARALLEL = "parallel"
    """Neither waits for the other."""
    AFTER = "after"
    """The node starts when the step of the other node is finished."""


class StepReachability:
    """Reachability of the steps of one graph, by number."""

    def __init__(self, graph: Graph) -> None:
        self._next_steps = graph.next_steps
        self._order = _topological_order(self._next_steps)
        self._rank = [0] * len(self._next_steps)
        for rank, step in enumerate(self._order):
            self._rank[step] = rank

    @cached_property
    def _labels(self) -> list[tuple[list[int], list[int]]]:
        """The lowest and the highest numbers of the steps; many graphs need none."""
        return [
            _interval_labels(self._order, self._next_steps, variant=variant)
            for variant in range(LABEL_COUNT)
        ]

    def is_after(self, step: int, other: int) -> bool:
        """Return whether a step starts only after another one is finished."""
        if step == other or not self._may_precede(other, step):
            return False
        seen, pending = {other}, [other]
        while pending:
            for next_step in self._next_steps[pending.pop()]:
                if next_step == step:
                    return True
                if next_step not in seen and self._may_precede(next_step, step):
                    seen.add(next_step)
                    pending.append(next_step)
        return False

    def _may_precede(self, start: int, end: int) -> bool:
        if self._rank[start] >= self._rank[end]:
            return False
        return all(
            low[start] <= low[end] and high[end] <= high[start] for low, high in self._labels
        )


def relative_position(
    graph: Graph, reachability: StepReachability, node: int, other: int
) -> RelativePosition:
    """Return the position of a node relative to another. One without a step is parallel to all."""
    node_step, other_step = graph.nodes[node].step, graph.nodes[other].step
    if NO_STEP in (node_step, other_step):
        return RelativePosition.PARALLEL
    if node_step == other_step:
        return RelativePosition.SAME
    if reachability.is_after(node_step, other_step):
        return RelativePosition.AFTER
    return (
        RelativePosition.BEFORE
        if reachability.is_after(other_step, node_step)
        else RelativePosition.PARALLEL
    )


def _topological_order(next_steps: tuple[tuple[int, ...], ...]) -> list[int]:
    """Return the steps in topological order; steps in a cycle are last."""
    open_counts = [0] * len(next_steps)
    for others in next_steps:
        for next_step in others:
            open_counts[next_step] += 1
    order = [step for step, count in enumerate(open_counts) if not count]
    for step in order:  # grows during the loop
        for next_step in next_steps[step]:
            open_counts[next_step] -= 1
            if not open_counts[next_step]:
                order.append(next_step)
    ordered = set(order)
    return [*order, *(step for step in range(len(next_steps)) if step not in ordered)]


def _interval_labels(
    order: list[int], next_steps: tuple[tuple[int, ...], ...], *, variant: int
) -> tuple[list[int], list[int]]:
    """Return for each step the lowest number after it, and the number at which a walk leaves it.

    The interval of a later step is inside the interval of an earlier one. Walks in different orders
    exclude more cases.
    """
    high, low = [-1] * len(next_steps), [0] * len(next_steps)
    number = 0
    for start in order if variant % 2 == 0 else reversed(order):
        if high[start] != -1:
            continue
        stack = [(start, iter(_rotate(next_steps[start], variant)))]
        high[start] = -2
        while stack:
            step, remaining = stack[-1]
            following = next((next_step for next_step in remaining if high[next_step] == -1), None)
            if following is not None:
                high[following] = -2
                stack.append((following, iter(_rotate(next_steps[following], variant))))
                continue
            stack.pop()
            lowest = min(
                (low[next_step] for next_step in next_steps[step] if high[next_step] >= 0),
                default=number,
            )
            low[step], high[step] = min(lowest, number), number
            number += 1
    return low, high


def _rotate(steps: tuple[int, ...], variant: int) -> tuple[int, ...]:
    return steps[::-1] if variant % 2 else steps[variant % 3 :] + steps[: variant % 3]
