"""A plan as people read it: step after step, object after object, field by field."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.change import Difference, Fate
from tidegate.model.objects import Spot
from tidegate.model.plan import Deed, Item, Plan, Step, items_of
from tidegate.report.rollout.names import name_step, name_unit


def plan_lines(plan: Plan, differences: dict[Spot, Difference]) -> Iterator[str]:
    """Each step with what is done to its objects; fields below those that change."""
    names = {step.id: step_name(step, several=len(plan.units) > 1) for step in plan.steps}
    width = max((len(name) for name in names.values()), default=0)
    for step in plan.steps:
        name = names[step.id]
        for item in items_of(step):
            difference = differences.get(Spot(step.cluster, item.ref))
            yield f"  {name:{width}}  {_item_line(item, difference)}"
            yield from _field_lines(difference, " " * (width + 4))
            name = ""
    yield ""
    yield summary_line(differences)


def step_name(step: Step, *, several: bool = False) -> str:
    """`wave -2`, `PreSync`, `PreSync wave 1`; with its unit where there are several."""
    told = name_step(step)
    return f"{name_unit(step.unit, step.cluster)}: {told}" if several else told


def _item_line(item: Item, difference: Difference | None) -> str:
    deed = difference.deed.value if difference else "delete"
    if item.deed is Deed.AWAIT:
        deed = "await"
    asks = difference is not None and difference.deed is Fate.KEEP and item.asks
    note = " (hook)" if item.hook is not None else " (asks for confirmation)" if asks else ""
    return f"{deed:8}  {item.ref}{note}"


def _field_lines(difference: Difference | None, indent: str) -> Iterator[str]:
    if difference is None or difference.deed in (Fate.CREATE, Fate.KEEP):
        return
    for change in difference.fields:
        before, after = change.before or "-", change.after or "-"
        yield f"{indent}          {change.path}: {before} → {after}"
    for path in difference.because:
        yield f"{indent}          {path} cannot be changed"


def summary_line(differences: dict[Spot, Difference]) -> str:
    counts = dict.fromkeys(Fate, 0)
    for difference in differences.values():
        counts[difference.deed] += 1
    told = [f"{count} to {fate.value}" for fate, count in counts.items() if count]
    return ", ".join(told) or "there is nothing to do"
