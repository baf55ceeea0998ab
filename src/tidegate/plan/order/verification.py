"""Whether a finished rollout respected its order, by its run record and by the cluster.

A run record has milliseconds of its own clock. A cluster has whole seconds, and only the last
change of an object: if that does not decide, the pair is unproven.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.plans.verification import OrderPair
from tidegate.model.rollouts.run import RunHead, RunStep
from tidegate.plan.order.observed import WRITE_ACTIONS, ObservedOrder
from tidegate.plan.order.recorded import StepTimes

FAILURE_PHASE = "syncfail"
"""The phase that starts after a failure."""


def prove_order(
    head: RunHead, recorded: StepTimes | None, observed: ObservedOrder | None
) -> tuple[OrderPair, ...]:
    """Return the evidence for each edge whose later step writes objects."""
    return tuple(_order_pairs(head, recorded, observed))


def _order_pairs(
    head: RunHead, recorded: StepTimes | None, observed: ObservedOrder | None
) -> Iterator[OrderPair]:
    steps = {step.id: step for step in head.steps}
    empty_steps = _empty_steps(head)
    for edge in head.edges:
        after = steps.get(edge.after)
        if (
            edge.before in empty_steps
            or after is None
            or not has_writes(after)
            or after.phase == FAILURE_PHASE
        ):
            continue
        pair = OrderPair(before=edge.before, after=edge.after, reason=edge.reason)
        if observed is not None:
            pair = observed.check_pair(pair)
        if recorded is not None:
            pair = msgspec.structs.replace(
                pair,
                recorded=recorded.pair_state(edge.before, edge.after),
                passed_at=recorded.passed_at.get(edge.before),
                started_at=recorded.started_at.get(edge.after),
            )
        yield pair


def _empty_steps(head: RunHead) -> set[str]:
    """Return the placeholders that come after no step with objects."""
    predecessors: dict[str, list[str]] = {}
    for edge in head.edges:
        predecessors.setdefault(edge.after, []).append(edge.before)
    empty_steps: set[str] = set()
    for step in head.steps:
        if not step.objects and all(
            predecessor in empty_steps for predecessor in predecessors.get(step.id, ())
        ):
            empty_steps.add(step.id)
    return empty_steps


def has_writes(step: RunStep) -> bool:
    return any(run_object.action in WRITE_ACTIONS for run_object in step.objects)
