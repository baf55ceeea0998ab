"""A plan as people read it: step after step, object after object, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.model.change import Difference, Fate
from tidegate.model.objects import Spot
from tidegate.model.plan import AWAITED, Because, Edge, Item, Plan, Step, items_of
from tidegate.model.unit import UnitId
from tidegate.report.places import seen_text
from tidegate.report.rollout.names import count, fold, name_from, name_step, name_unit
from tidegate.report.rollout.rows import Row, Span, Style

MOST_NAMED = 3
SIGNS = {
    Fate.CREATE: ("+", Style.GOOD),
    Fate.CHANGE: ("~", Style.ODD),
    Fate.REPLACE: ("~", Style.ODD),
    Fate.RECREATE: ("~", Style.BAD),
    Fate.PRUNE: ("-", Style.BAD),
    Fate.KEEP: (" ", Style.FAINT),
}


def plan_rows(
    plan: Plan,
    differences: dict[Spot, Difference],
    refused: int = 0,
    unknown: int = 0,
    *,
    weakened: bool = False,
    signs: bool = False,
) -> Iterator[Row]:
    """Each step with what is done to its objects; fields below those that change.

    Where there are several units, each has its steps below it, with why it comes where it does.
    `refused`: how many objects the cluster would not take. `unknown`: of how many units nothing can
    be said. `weakened`: not all of it could be had. `signs`: what comes, changes and goes has a
    `+`, a `~` or a `-` before it.
    """
    shown = _Shown(differences, max((len(step_name(one)) for one in plan.steps), default=0), signs)
    if len(plan.units) == 1:
        for step in plan.steps:
            yield from shown.step(step)
    else:
        yield from _unit_rows(plan, shown)
    yield ()
    if differences or not unknown:
        bounds = ", as far as it is known" if weakened and not differences else ""
        yield (Span(f"{summary_line(differences)}{bounds}", Style.STRONG),)
    if unknown:
        told = f"what {count(unknown, 'unit')} {'brings' if unknown == 1 else 'bring'} is not known"
        yield (Span(told, Style.BAD),)
    if refused:
        yield (Span(f"the cluster would refuse {count(refused, 'object')}", Style.BAD),)


class _Shown(NamedTuple):
    """What is known of all objects, and how they are shown."""

    differences: dict[Spot, Difference]
    width: int
    signs: bool

    def step(self, step: Step) -> Iterator[Row]:
        name = step_name(step)
        for item in items_of(step):
            difference = self.differences.get(Spot(step.cluster, item.ref))
            sign, style = _sign(item, difference)
            deed = Span(f"{sign} " if self.signs else "", style)
            head = Span(f"  {name:{self.width}}  ")
            yield (head, deed, Span(_item_line(item, difference), style))
            indent = " " * (self.width + 4 + (2 if self.signs else 0))
            for line in _field_lines(difference, indent):
                yield (Span(line, Style.FAINT),)
            name = ""

    def brings(self, step: Step, child: UnitId) -> Row:
        gap = "  " if self.signs else ""
        return (Span(f"  {step_name(step):{self.width}}  {gap}{'bring':8}  {child}"),)


def _sign(item: Item, difference: Difference | None) -> tuple[str, Style]:
    if item.deed in AWAITED:
        return " ", Style.PLAIN
    return SIGNS[difference.deed] if difference else SIGNS[Fate.PRUNE]


def _unit_rows(plan: Plan, shown: _Shown) -> Iterator[Row]:
    units: dict[UnitId, list[Step]] = {}
    for step in plan.steps:
        units.setdefault(step.unit, []).append(step)
    brings, behind = _ties(plan, units)
    for number, (unit, mine) in enumerate(units.items()):
        if number:
            yield ()
        why = ", ".join(_said(behind.get(unit, {})))
        told = f"{': ' if why else ''}{why}"
        yield (Span(name_unit(unit, mine[0].cluster), Style.STRONG), Span(told))
        for step in mine:
            yield from (shown.brings(step, child) for child in brings.get(step.id, ()))
            yield from shown.step(step)


class _Tie(NamedTuple):
    """How a unit comes behind others, and because of what."""

    how: str
    because: str = ""


def _ties(
    plan: Plan, units: dict[UnitId, list[Step]]
) -> tuple[dict[str, list[UnitId]], dict[UnitId, dict[_Tie, dict[str, None]]]]:
    """By joint, the units that begin there; by unit, how it is tied to which others."""
    steps = {step.id: step for step in plan.steps}
    brings: dict[str, list[UnitId]] = {}
    behind: dict[UnitId, dict[_Tie, dict[str, None]]] = {}
    for edge in plan.edges:
        before, after = steps[edge.before], steps[edge.after]
        if before.unit == after.unit or after is not units[after.unit][0]:
            continue
        if edge.because is Because.PARENT and before.is_joint:
            brings.setdefault(before.id, []).append(after.unit)
        alike = behind.setdefault(after.unit, {}).setdefault(_tie(edge, before), {})
        alike[name_from(after.unit, before.unit)] = None
    return brings, behind


def _tie(edge: Edge, before: Step) -> _Tie:
    """How a unit is tied to another, by one of the edges to its first step."""
    if edge.because is Because.PARENT:
        return _Tie(f"{'in' if before.is_joint else 'after'} {step_name(before)} of")
    file, _, _ = seen_text(edge.where).partition(
        " ("
    )  # the field is what the reason is called after
    where = f", {file}" if file else ""
    return _Tie("after", f" ({edge.because}{where})")


def _said(ties: dict[_Tie, dict[str, None]]) -> Iterator[str]:
    """Why a unit comes where it does; what ties it to several others alike is said once."""
    for tie, others in ties.items():
        yield f"{tie.how} {fold(others, len(others), MOST_NAMED)}{tie.because}"


def step_name(step: Step, *, several: bool = False) -> str:
    """`wave -2`, `PreSync`, `PreSync wave 1`; with its unit where there are several."""
    told = name_step(step)
    return f"{name_unit(step.unit, step.cluster)}: {told}" if several else told


def _item_line(item: Item, difference: Difference | None) -> str:
    deed = difference.deed.value if difference else "delete"
    if item.deed in AWAITED:
        deed = item.deed.value
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
