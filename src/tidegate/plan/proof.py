"""Whether an order was kept: by what a rollout told, and by what a cluster has written down.

A rollout tells its moments to the millisecond, by its own clock. A cluster keeps whole seconds, and
of an object that changes only the last change: where that does not decide, the pair is unproven.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.proof import OrderPair
from tidegate.model.run import RunHead, RunStep
from tidegate.plan.seen_order import WRITTEN, SeenOrder
from tidegate.plan.told_order import ToldTimes

RESCUE = "syncfail"
"""The phase that begins when something has failed."""


def prove(head: RunHead, told: ToldTimes | None, seen: SeenOrder | None) -> tuple[OrderPair, ...]:
    """What is known of each edge of an order, if something is written behind it."""
    return tuple(_pairs(head, told, seen))


def _pairs(head: RunHead, told: ToldTimes | None, seen: SeenOrder | None) -> Iterator[OrderPair]:
    steps = {step.id: step for step in head.steps}
    hollow = _hollow(head)
    for edge in head.edges:
        after = steps.get(edge.after)
        if edge.before in hollow or after is None or not is_writing(after) or after.phase == RESCUE:
            continue
        pair = OrderPair(before=edge.before, after=edge.after, because=edge.because)
        if seen is not None:
            pair = seen.look(pair)
        if told is not None:
            pair = msgspec.structs.replace(
                pair,
                recorded=told.judge(edge.before, edge.after),
                passed=told.passed.get(edge.before),
                begun=told.begun.get(edge.after),
            )
        yield pair


def _hollow(head: RunHead) -> set[str]:
    """The joints that nothing with objects comes before."""
    before: dict[str, list[str]] = {}
    for edge in head.edges:
        before.setdefault(edge.after, []).append(edge.before)
    found: set[str] = set()
    for step in head.steps:
        if not step.objects and all(one in found for one in before.get(step.id, ())):
            found.add(step.id)
    return found


def is_writing(step: RunStep) -> bool:
    return any(one.deed in WRITTEN for one in step.objects)
