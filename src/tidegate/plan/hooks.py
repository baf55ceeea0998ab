"""A plan without its hooks: for units in which nothing has changed."""

from __future__ import annotations

import msgspec

from tidegate.model.plan import Edge, Plan, Step


def without_hooks(plan: Plan, units: set[str]) -> Plan:
    """The plan without the hooks of these units; steps that had nothing else are gone.

    Its digest stays: it covers what Git says.
    """
    kept = [_bare(step) if step.unit in units else step for step in plan.steps]
    steps = tuple(step for step in kept if step.batches or step.expands)
    if len(steps) == len(plan.steps) and all(map(_is_same, steps, plan.steps)):
        return plan
    return msgspec.structs.replace(plan, steps=steps, edges=_bridged(plan, steps))


def _is_same(one: Step, other: Step) -> bool:
    return one is other


def _bare(step: Step) -> Step:
    batches = tuple(tuple(item for item in batch if item.hook is None) for batch in step.batches)
    left = tuple(batch for batch in batches if batch)
    return step if left == step.batches else msgspec.structs.replace(step, batches=left)


def _bridged(plan: Plan, steps: tuple[Step, ...]) -> tuple[Edge, ...]:
    """Edges as before; what was tied to a step that is gone is tied to the next one beyond."""
    left = {step.id for step in steps}
    before: dict[str, list[Edge]] = {}
    for edge in plan.edges:
        before.setdefault(edge.after, []).append(edge)
    found: dict[Edge, None] = {}
    for step in steps:
        behind = list(before.get(step.id, ()))
        while behind:
            edge = behind.pop()
            if edge.before in left:
                found[Edge(edge.before, step.id, edge.because, edge.strength)] = None
            else:
                behind += before.get(edge.before, ())
    return tuple(found)
