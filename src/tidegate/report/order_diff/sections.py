"""The sections of a report about a changed order, as sentences with their locations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.errors import Location
from tidegate.model.display import count_noun, format_running, join_limited
from tidegate.model.finding import Severity
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.graph import EdgeKind
from tidegate.model.views.order_diff import (
    Change,
    DependencyChange,
    DiffReport,
    GateChange,
    GateType,
    Move,
    OrderDiff,
    Removal,
    UnitChange,
    UnitChangeType,
)

MAX_NAMED = 5
MAX_REMOVED = 12
"""Maximum number of deleted objects that are named."""
LOST_GATES = {
    GateType.WAIT: "{unit} does not wait for its objects any more",
    GateType.HEALTH_CHECK: "{unit} does not wait for {subject} any more",
    GateType.EXPRESSION: "{unit} has no health expression for {subject} any more",
    GateType.HEALTH_RULE: "{unit} does not wait for {subject} any more: no rule knows its health",
    GateType.HOOK: "{unit} does not run the hook {subject} any more",
    GateType.PROBE: "{unit} has no {subject} any more",
    GateType.DEPENDS_ON: "{unit} does not wait for {subject} any more",
    GateType.CHILDREN: "{unit} does not wait for the units that it creates any more",
    GateType.BARRIER: "{unit} does not wait {subject} any more",
    GateType.RECONCILIATION: "{unit} is suspended",
}
GAINED_GATES = {
    GateType.WAIT: "{unit} waits for its objects",
    GateType.HEALTH_CHECK: "{unit} waits for {subject}",
    GateType.EXPRESSION: "{unit} has a health expression for {subject}",
    GateType.HEALTH_RULE: "{unit} waits for {subject}: a rule knows its health",
    GateType.HOOK: "{unit} runs the hook {subject}",
    GateType.PROBE: "{unit} has a {subject}",
    GateType.DEPENDS_ON: "{unit} waits for {subject}",
    GateType.CHILDREN: "{unit} waits for the units that it creates",
    GateType.BARRIER: "{unit} waits {subject}",
    GateType.RECONCILIATION: "{unit} is not suspended any more",
}
NEEDS = {
    EdgeKind.OPERATOR: "is served by",
    EdgeKind.DEFINITION: "is defined by",
    EdgeKind.SELECTOR: "selects",
}


class SectionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence of a section, and where the change is."""

    text: str
    location: Location | None = None
    details: tuple[str, ...] = ()


class DiffSection(msgspec.Struct, frozen=True):
    """A section with a title."""

    title: str
    entries: tuple[SectionEntry, ...]


def order_sections(order: OrderDiff) -> list[DiffSection]:
    """Return the sections of one order in the order of their weight; empty ones are left out."""
    gates = order.gates
    dependencies = order.dependencies
    sections = [
        DiffSection("gates lost", _gate_entries(gates, Change.REMOVED)),
        DiffSection("gates gained", _gate_entries(gates, Change.ADDED)),
        DiffSection("moved", tuple(map(_move_entry, order.moves))),
        DiffSection("levels of dependencies", tuple(_level_entries(order))),
        DiffSection("renumbered", tuple(_renumbered_entries(order))),
        DiffSection("dependencies removed", _dependency_entries(dependencies, Change.REMOVED)),
        DiffSection("dependencies added", _dependency_entries(dependencies, Change.ADDED)),
        DiffSection("units removed", _unit_entries(order.units, UnitChangeType.REMOVED)),
        DiffSection("units renamed", _unit_entries(order.units, UnitChangeType.RENAMED)),
        DiffSection("units added", _unit_entries(order.units, UnitChangeType.ADDED)),
        DiffSection("critical path", tuple(_critical_path_entries(order))),
        DiffSection("affected units", tuple(_affected_entries(order))),
        DiffSection("not compared", tuple(_unknown_entries(order))),
    ]
    return [section for section in sections if section.entries]


def diff_heading(report: DiffReport) -> str:
    """Return the verdict in one line."""
    orders = report.orders
    counts = [
        (len(report.new_errors), "new error"),
        (len(report.fixed_errors), "fixed error"),
        (_count_gates(orders, Change.REMOVED), "gate lost"),
        (_count_gates(orders, Change.ADDED), "gate gained"),
        (sum(len(order.moves) for order in orders), "moved"),
        (sum(len(order.dependencies) for order in orders), "dependency changed"),
        *(
            (sum(unit.type is kind for order in orders for unit in order.units), f"unit {kind}")
            for kind in (UnitChangeType.REMOVED, UnitChangeType.RENAMED, UnitChangeType.ADDED)
        ),
    ]
    parts = [_count_text(count, noun) for count, noun in counts if count]
    if not parts:
        return same_order_line(report)
    return ", ".join(parts)


def same_order_line(report: DiffReport) -> str:
    """Return the only line about a change that keeps the order."""
    units = sum(order.unit_count for order in report.orders)
    text = f"same order as {report.base}: {count_noun(units, 'unit')}"
    renumbered = {entry.unit for order in report.orders for entry in order.renumbered}
    unknown = {unit for order in report.orders for unit in order.not_compared}
    warnings = report.new.count_severity(Severity.WARNING)
    text += (
        f"; {count_noun(len(report.not_read), 'warning')} about files that were not read"
        if report.not_read
        else ""
    )
    text += f"; waves renumbered in {join_limited(sorted(renumbered))}" if renumbered else ""
    text += f"; not compared: {join_limited(sorted(unknown))}" if unknown else ""
    text += (
        f"; {count_noun(warnings, 'new warning')}, see `tidegate lint --base`" if warnings else ""
    )
    return text


def _count_gates(orders: Iterable[OrderDiff], change: Change) -> int:
    return sum(gate.change is change for order in orders for gate in order.gates)


def _count_text(count: int, noun: str) -> str:
    """Return `1 gate lost`, `2 gates lost`, `2 moved`, `2 new errors`."""
    first, _, rest = noun.partition(" ")
    if not rest:
        return f"{count} {noun}"
    if rest == "error":
        return f"{count} {noun}{'' if count == 1 else 's'}"
    plural = first if count == 1 else {"dependency": "dependencies"}.get(first, f"{first}s")
    return f"{count} {plural} {rest}"


def _gate_entries(gates: Iterable[GateChange], change: Change) -> tuple[SectionEntry, ...]:
    return tuple(_gate_entry(gate) for gate in gates if gate.change is change)


def _gate_entry(gate: GateChange) -> SectionEntry:
    is_lost = gate.change is Change.REMOVED
    template = (LOST_GATES if is_lost else GAINED_GATES)[gate.type]
    text = template.format(unit=f"`{gate.unit}`", subject=gate.subject)
    if gate.waiting_units:
        verb = "starts" if len(gate.waiting_units) == 1 else "start"
        time = "earlier" if is_lost else "later"
        text += f"; {count_noun(len(gate.waiting_units), 'unit')} {verb} {time}"
    others = [unit for unit in gate.waiting_units if unit != gate.unit]
    waiting = (join_limited(others, MAX_NAMED),) if others else ()
    return SectionEntry(
        text=text, location=_closest(gate.location, gate.base_location), details=waiting
    )


def _closest(location: Location | None, base_location: Location | None) -> Location | None:
    return location or base_location


def _move_entry(move: Move) -> SectionEntry:
    subject = f"`{move.name}`" if move.ref is None or move.name == str(move.unit) else move.name
    unit = "" if move.name == str(move.unit) else f" of `{move.unit}`"
    return SectionEntry(
        text=f"{subject}{unit}: {move.before} → {move.after}",
        location=_closest(move.location, move.base_location),
    )


def _level_entries(order: OrderDiff) -> Iterator[SectionEntry]:
    if order.levels:
        changes = [
            f"`{entry.unit}` {_level_name(entry.before)} → {_level_name(entry.after)}"
            for entry in order.levels
        ]
        yield SectionEntry(text=join_limited(changes, MAX_NAMED))


def _level_name(level: int) -> str:
    return str(level) if level else "none"


def _renumbered_entries(order: OrderDiff) -> Iterator[SectionEntry]:
    for entry in order.renumbered:
        steps = join_limited([f"{old} → {new}" for old, new in entry.steps], MAX_NAMED)
        yield SectionEntry(text=f"`{entry.unit}`, same order: {steps}")


def _dependency_entries(
    changes: Iterable[DependencyChange], change: Change
) -> tuple[SectionEntry, ...]:
    return tuple(_dependency_entry(entry) for entry in changes if entry.change is change)


def _dependency_entry(entry: DependencyChange) -> SectionEntry:
    verb = NEEDS.get(entry.kind, "needs")
    provider = entry.provider
    if entry.required_object and entry.required_object != provider:
        provider = f"{entry.required_object} from {provider}"
    if entry.is_external:
        provider += ", which no unit provides"
    elif entry.provider_unit is not None and entry.provider_unit != entry.dependent_unit:
        provider += f" of `{entry.provider_unit}`"
    unit = f" of `{entry.dependent_unit}`" if entry.dependent_unit else ""
    reason = f"{entry.kind}: {entry.field}" if entry.field else str(entry.kind)
    more = f", and {entry.more} more" if entry.more else ""
    return SectionEntry(
        text=f"{entry.dependent}{unit} {verb} {provider} ({reason}){more}", location=entry.location
    )


def _unit_entries(changes: Iterable[UnitChange], kind: UnitChangeType) -> tuple[SectionEntry, ...]:
    return tuple(_unit_entry(entry) for entry in changes if entry.type is kind)


def _unit_entry(entry: UnitChange) -> SectionEntry:
    objects = count_noun(entry.object_count, "object")
    text = f"`{entry.unit}`: {objects}"
    if entry.old_unit is not None:
        text = f"`{entry.old_unit}` → `{entry.unit}`: {objects}"
    details = tuple(_removal_lines(entry.removal)) if entry.removal else ()
    return SectionEntry(text=text, location=entry.location, details=details)


def _removal_lines(removal: Removal) -> Iterator[str]:
    if not removal.is_deleted:
        yield f"its objects are kept: {removal.kept_reason}"
        return
    refs = [ref for step in removal.steps for ref in step]
    if refs:
        order = ", in this order" if len(removal.steps) > 1 else ""
        yield f"deletes{order}: {_deletion_text(removal.steps, len(refs))}"
    for need in removal.still_needed:
        reason = f"needed by {join_limited(need.needed_by)}" if need.needed_by else "holds data"
        yield f"{need.ref}: {reason}"


def _deletion_text(steps: Iterable[tuple[Ref, ...]], total: int) -> str:
    names: list[str] = []
    shown = 0
    for step in steps:
        remaining = step[: MAX_REMOVED - shown]
        if remaining:
            names.append(", ".join(map(str, remaining)))
            shown += len(remaining)
    more = f" and {total - shown} more" if total > shown else ""
    return f"{'; then '.join(names)}{more}"


def _critical_path_entries(order: OrderDiff) -> Iterator[SectionEntry]:
    path = order.critical_path
    if path is not None:
        before, after = format_running(path.before.duration), format_running(path.after.duration)
        steps = (join_limited(path.after.steps, MAX_NAMED),) if path.after.steps else ()
        yield SectionEntry(text=f"{before} → {after} (assumed durations)", details=steps)


def _affected_entries(order: OrderDiff) -> Iterator[SectionEntry]:
    for entry in order.affected_units:
        cluster = f" in `{entry.cluster}`" if entry.cluster else ""
        names = join_limited(entry.units, MAX_NAMED)
        yield SectionEntry(text=f"{count_noun(len(entry.units), 'unit')}{cluster}: {names}")


def _unknown_entries(order: OrderDiff) -> Iterator[SectionEntry]:
    if order.not_compared:
        names = join_limited([f"`{unit}`" for unit in order.not_compared], MAX_NAMED)
        count = count_noun(len(order.not_compared), "unit")
        yield SectionEntry(text=f"{count}, because not all objects are known: {names}")
