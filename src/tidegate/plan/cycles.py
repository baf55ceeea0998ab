"""Steps in an order that respects their edges, or the circle that makes it impossible."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidegate.errors import PlanError
from tidegate.model.plan import Edge, Step


def put_in_order(steps: dict[str, Step], edges: Iterable[Edge]) -> tuple[Step, ...]:
    """Those without edges between them stay as they came. Raises PlanError for a circle."""
    unmet = dict.fromkeys(steps, 0)
    after: dict[str, list[str]] = {name: [] for name in steps}
    for edge in edges:
        unmet[edge.after] += 1
        after[edge.before].append(edge.after)
    free = deque(name for name, count in unmet.items() if not count)
    ordered: list[Step] = []
    while free:
        name = free.popleft()
        ordered.append(steps[name])
        for behind in after[name]:
            unmet[behind] -= 1
            if not unmet[behind]:
                free.append(behind)
    if len(ordered) < len(steps):
        _refuse(steps, {name for name, count in unmet.items() if count}, after)
    return tuple(ordered)


def _refuse(steps: dict[str, Step], held: set[str], after: dict[str, list[str]]) -> None:
    circle = _circle(held, after)
    units = list(dict.fromkeys(f"`{steps[name].unit}`" for name in circle))
    told = " waits for ".join([*units, units[0]]) if len(units) > 1 else f"{units[0]} for itself"
    problem = f"units wait for each other: {told}"
    raise PlanError("plan.cycle", problem, hint="remove one of these dependencies")


def _circle(held: set[str], after: dict[str, list[str]]) -> list[str]:
    """Walk forward among the steps that are held until one comes again.

    Backwards every held step has a held one before it; so the edges are turned round first.
    """
    before: dict[str, str] = {}
    for name in sorted(held):
        for behind in after[name]:
            if behind in held:
                before.setdefault(behind, name)
    walk = [min(held)]
    while walk[-1] not in walk[:-1]:
        walk.append(before[walk[-1]])
    return walk[walk.index(walk[-1]) + 1 :]
