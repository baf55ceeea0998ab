"""Plans and deletions as rows for people and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidegate.model.display import count_noun, join_limited
from tidegate.model.display_paths import location_text
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.plans.change import DiffAction, Difference, FieldChange
from tidegate.model.plans.plan import (
    AWAIT_ACTIONS,
    Edge,
    EdgeReason,
    ItemAction,
    Plan,
    PlanItem,
    PlannedUnit,
    Step,
    is_confidential,
    public_digest,
    step_items,
)
from tidegate.model.rollouts.documents import JSON_VERSION
from tidegate.model.rollouts.names import relative_unit_name, step_name, unit_name
from tidegate.model.units.unit import UnitId
from tidegate.model.views.unit_states import UnitState
from tidegate.report.styled_text import Row, Span, Style
from tidegate.report.unit_states import UnitStateDocument

MAX_NAMED = 3
ACTION_SIGNS = {
    DiffAction.CREATE: ("+", Style.GOOD),
    DiffAction.CHANGE: ("~", Style.NOTICE),
    DiffAction.REPLACE: ("~", Style.NOTICE),
    DiffAction.RECREATE: ("~", Style.BAD),
    DiffAction.PRUNE: ("-", Style.BAD),
    DiffAction.KEEP: (" ", Style.FAINT),
}


def plan_rows(
    plan: Plan,
    differences: dict[ClusterRef, Difference],
    refused_count: int = 0,
    unknown_count: int = 0,
    *,
    is_incomplete: bool = False,
    with_signs: bool = False,
    changes_only: bool = False,
) -> Iterator[Row]:
    """Yield each step with the actions on its objects, and changed fields below them.

    With several units, the steps are grouped by unit, with the reason for its position.
    `changes_only` leaves out objects and units without changes.
    """
    builder = _RowBuilder(
        differences,
        max((len(step_title(planned_step)) for planned_step in plan.steps), default=0),
        with_signs,
        changes_only,
    )
    if len(plan.units) == 1:
        rows = [row for step in plan.steps for row in builder.step_rows(step)]
    else:
        rows = [*_unit_rows(plan, builder)]
    yield from rows
    if rows or not changes_only:
        yield ()
    if differences or not unknown_count:
        suffix = " (incomplete)" if is_incomplete and not differences else ""
        yield (Span(f"{summary_line(differences)}{suffix}", Style.STRONG),)
    unchanged = count_unchanged(plan, differences) if changes_only else 0
    if unchanged:
        objects = count_noun(unchanged, "unchanged object")
        message = f"{objects} not shown; add `--no-changes-only` to see all"
        yield (Span(message, Style.FAINT),)
    if unknown_count:
        message = f"the objects of {count_noun(unknown_count, 'unit')} are unknown"
        yield (Span(message, Style.BAD),)
    if refused_count:
        yield (Span(f"the cluster would reject {count_noun(refused_count, 'object')}", Style.BAD),)


class _RowBuilder(NamedTuple):
    """Builds the rows of steps."""

    differences: dict[ClusterRef, Difference]
    width: int
    has_signs: bool
    changes_only: bool

    def is_shown(self, step: Step, item: PlanItem) -> bool:
        """Return whether an object has a row."""
        return not self.changes_only or is_changed(
            item, self.differences.get(ClusterRef(step.cluster, item.ref))
        )

    def step_rows(self, step: Step) -> Iterator[Row]:
        name = step_title(step)
        for item in step_items(step):
            if not self.is_shown(step, item):
                continue
            difference = self.differences.get(ClusterRef(step.cluster, item.ref))
            sign, style = _sign(item, difference)
            sign_span = Span(f"{sign} " if self.has_signs else "", style)
            name_span = Span(f"  {name:{self.width}}  ")
            yield (name_span, sign_span, Span(_item_line(item, difference), style))
            indent = " " * (self.width + 4 + (2 if self.has_signs else 0))
            for line in _field_lines(difference, indent):
                yield (Span(line, Style.FAINT),)
            name = ""

    def child_row(self, step: Step, child: UnitId) -> Row:
        sign_gap = "  " if self.has_signs else ""
        return (Span(f"  {step_title(step):{self.width}}  {sign_gap}{'deploy':8}  {child}"),)


def is_changed(item: PlanItem, difference: Difference | None) -> bool:
    """Return whether a rollout writes or deletes an object."""
    is_awaited = item.action in AWAIT_ACTIONS
    return not is_awaited and (difference is None or difference.action is not DiffAction.KEEP)


def count_unchanged(plan: Plan, differences: Mapping[ClusterRef, Difference]) -> int:
    """Return the number of rows about objects that a rollout does not change."""
    return sum(
        not is_changed(item, differences.get(ClusterRef(step.cluster, item.ref)))
        for step in plan.steps
        for item in step_items(step)
    )


def _sign(item: PlanItem, difference: Difference | None) -> tuple[str, Style]:
    if item.action in AWAIT_ACTIONS:
        return " ", Style.PLAIN
    return ACTION_SIGNS[difference.action] if difference else ACTION_SIGNS[DiffAction.PRUNE]


def _unit_rows(plan: Plan, builder: _RowBuilder) -> Iterator[Row]:
    units: dict[UnitId, list[Step]] = {}
    for step in plan.steps:
        units.setdefault(step.unit, []).append(step)
    children, reasons = _order_reasons(plan, units)
    shown = {
        unit: unit_steps
        for unit, unit_steps in units.items()
        if not builder.changes_only
        or any(builder.is_shown(step, item) for step in unit_steps for item in step_items(step))
    }
    for index, (unit, unit_steps) in enumerate(shown.items()):
        if index:
            yield ()
        reason = ", ".join(_reason_texts(reasons.get(unit, {})))
        reason_text = f"{': ' if reason else ''}{reason}"
        yield (Span(unit_name(unit, unit_steps[0].cluster), Style.STRONG), Span(reason_text))
        for step in unit_steps:
            yield from (
                builder.child_row(step, child)
                for child in children.get(step.id, ())
                if child in shown
            )
            yield from builder.step_rows(step)


class _OrderReason(NamedTuple):
    """Why a unit comes after other units."""

    relation: str
    reason: str = ""


def _order_reasons(
    plan: Plan, units: dict[UnitId, list[Step]]
) -> tuple[dict[str, list[UnitId]], dict[UnitId, dict[_OrderReason, dict[str, None]]]]:
    """Return the child units by step, and why each unit waits for others."""
    steps = {step.id: step for step in plan.steps}
    children: dict[str, list[UnitId]] = {}
    reasons: dict[UnitId, dict[_OrderReason, dict[str, None]]] = {}
    for edge in plan.edges:
        before, after = steps[edge.before], steps[edge.after]
        if before.unit == after.unit or after is not units[after.unit][0]:
            continue
        if edge.reason is EdgeReason.PARENT and before.is_placeholder:
            children.setdefault(before.id, []).append(after.unit)
        units_with_reason = reasons.setdefault(after.unit, {}).setdefault(
            _order_reason(edge, before), {}
        )
        units_with_reason[relative_unit_name(after.unit, before.unit)] = None
    return children, reasons


def _order_reason(edge: Edge, before: Step) -> _OrderReason:
    """Return why a unit waits for another, by an edge to its first step."""
    if edge.reason is EdgeReason.PARENT:
        return _OrderReason(f"{'in' if before.is_placeholder else 'after'} {step_title(before)} of")
    file, _, _ = location_text(edge.location).partition(" (")  # the reason already names the field
    file_text = f", {file}" if file else ""
    return _OrderReason("after", f" ({edge.reason}{file_text})")


def _reason_texts(reasons: dict[_OrderReason, dict[str, None]]) -> Iterator[str]:
    """Yield why a unit comes at its position; units with the same reason are joined."""
    for reason, others in reasons.items():
        yield f"{reason.relation} {join_limited(others, MAX_NAMED)}{reason.reason}"


def step_title(step: Step, *, with_unit: bool = False) -> str:
    """Return the name of a step: `wave -2`, `PreSync`; if `with_unit`, with its unit."""
    name = step_name(step)
    return f"{unit_name(step.unit, step.cluster)}: {name}" if with_unit else name


def _item_line(item: PlanItem, difference: Difference | None) -> str:
    action = difference.action.value if difference else "delete"
    if item.action in AWAIT_ACTIONS:
        action = item.action.value
    needs_confirmation = (
        difference is not None
        and difference.action is DiffAction.KEEP
        and item.requires_confirmation
    )
    note = (
        " (hook)"
        if item.hook is not None
        else " (needs confirmation)"
        if needs_confirmation
        else ""
    )
    return f"{action:8}  {item.ref}{note}{_owner_note(difference)}"


def _owner_note(difference: Difference | None) -> str:
    """Return who loses the object."""
    if difference is None or not difference.other_owner:
        return ""
    relation = "belongs to" if difference.action is DiffAction.PRUNE else "taken over from"
    return f" ({relation} {difference.other_owner})"


def _field_lines(difference: Difference | None, indent: str) -> Iterator[str]:
    if difference is None or difference.action in (DiffAction.CREATE, DiffAction.KEEP):
        return
    for change in difference.fields:
        before, after = change.before or "-", change.after or "-"
        yield f"{indent}          {change.path}: {before} → {after}"
    for path in difference.immutable_fields:
        yield f"{indent}          {path} is immutable"


def summary_line(differences: dict[ClusterRef, Difference]) -> str:
    counts = dict.fromkeys(DiffAction, 0)
    for difference in differences.values():
        counts[difference.action] += 1
    parts = [f"{amount} to {action.value}" for action, amount in counts.items() if amount]
    foreign_count = sum(bool(difference.other_owner) for difference in differences.values())
    note = f" ({foreign_count} of another owner)" if foreign_count else ""
    return f"{', '.join(parts)}{note}" if parts else "no changes"


def owner_lines(differences: Mapping[ClusterRef, Difference]) -> Iterator[str]:
    """Yield each object that another unit or Helm release loses."""
    for cluster_ref, difference in differences.items():
        if difference.other_owner:
            verb = "deletes" if difference.action is DiffAction.PRUNE else "takes over"
            relation = "of" if difference.action is DiffAction.PRUNE else "from"
            yield f"{verb} {cluster_ref.ref} {relation} {difference.other_owner}"


JSON_NULL = msgspec.Raw(b"null")


class ObjectDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """JSON document of an object of a plan."""

    unit: str
    step: str
    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str
    operation: str
    hook: bool
    location: str
    fields: tuple[FieldChange, ...]
    because: tuple[str, ...]
    other_owner: str
    """The other unit or Helm release that loses the object."""
    object: msgspec.Raw
    """The manifest; null where it contains a secret."""


class StepDocument(msgspec.Struct, frozen=True, kw_only=True):
    """JSON document of a step."""

    id: str
    unit: str
    name: str
    """Name of the step within its unit."""
    after: tuple[str, ...]
    """Steps that it waits for."""


class UnitDocument(msgspec.Struct, frozen=True, kw_only=True):
    """JSON document of a unit."""

    unit: str
    cluster: str
    parent: str
    """The parent unit."""
    manager: str
    prunes: bool
    user: str
    """User to impersonate; empty for the caller."""


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True):
    """JSON document of a plan."""

    kind: str = "Plan"
    version: int = JSON_VERSION
    digest: str
    target: tuple[str, ...]
    units: tuple[UnitDocument, ...]
    steps: tuple[StepDocument, ...]
    objects: tuple[ObjectDocument, ...]
    summary: dict[str, int]
    refused: int
    """Number of objects that the cluster would refuse."""
    unknown: tuple[str, ...]
    """Units whose objects are not known."""
    states: tuple[UnitStateDocument, ...]
    """States of Applications and directories in the cluster, as Argo CD shows them."""


def plan_document(
    plan: Plan,
    differences: Mapping[ClusterRef, Difference],
    refused_count: int,
    target: Iterable[str],
    unknown: Iterable[UnitId] = (),
    states: Iterable[UnitState] = (),
) -> PlanDocument:
    """Return the JSON document of a plan, without secrets."""
    counts: dict[str, int] = {}
    for difference in differences.values():
        counts[difference.action] = counts.get(difference.action, 0) + 1
    predecessors: dict[str, dict[str, None]] = {}
    for edge in plan.edges:
        predecessors.setdefault(edge.after, {})[edge.before] = None
    return PlanDocument(
        digest=public_digest(plan),
        target=tuple(target),
        units=tuple(map(_unit_document, plan.units)),
        steps=tuple(_step_document(step, predecessors.get(step.id, ())) for step in plan.steps),
        objects=tuple(
            _object_document(step, item, differences.get(ClusterRef(step.cluster, item.ref)))
            for step in plan.steps
            for item in step_items(step)
        ),
        summary=counts,
        refused=refused_count,
        unknown=tuple(map(str, unknown)),
        states=tuple(map(UnitStateDocument.from_state, states)),
    )


def _unit_document(unit: PlannedUnit) -> UnitDocument:
    identity = unit.policy.identity
    return UnitDocument(
        unit=str(unit.id),
        cluster=unit.cluster,
        parent=str(unit.parent) if unit.parent else "",
        manager=unit.policy.manager,
        prunes=unit.policy.prune,
        user=identity.user if identity else "",
    )


def _step_document(step: Step, predecessors: Iterable[str]) -> StepDocument:
    unit, name = str(step.unit), step_name(step)
    return StepDocument(id=step.id, unit=unit, name=name, after=tuple(sorted(predecessors)))


def _object_document(step: Step, item: PlanItem, difference: Difference | None) -> ObjectDocument:
    ref = item.ref
    operation = (
        "await" if item.action in AWAIT_ACTIONS else difference.action if difference else "delete"
    )
    is_public = bool(item.body) and not is_confidential(item)
    return ObjectDocument(
        unit=str(step.unit),
        step=step.id,
        cluster=step.cluster,
        api_version=ref.kind.api_version,
        kind=ref.kind.name,
        namespace=ref.namespace,
        name=ref.name,
        operation=str(operation),
        hook=item.hook is not None,
        location=location_text(item.origin),
        fields=difference.fields if difference else (),
        because=difference.immutable_fields if difference else (),
        other_owner=difference.other_owner if difference else "",
        object=msgspec.Raw(item.body) if is_public else JSON_NULL,
    )


def deletion_lines(
    plan: Plan,
    retained: Sequence[Ref],
    unconfirmed: Sequence[Ref],
    other_owners: Mapping[ClusterRef, str],
) -> Iterator[str]:
    """Yield each step with the actions on its objects, then the objects that are kept."""
    with_unit = len({step.unit for step in plan.steps}) > 1
    names = {step.id: step_title(step, with_unit=with_unit) for step in plan.steps}
    width = max((len(name) for name in names.values()), default=0)
    for step in plan.steps:
        name = names[step.id]
        for item in step_items(step):
            if item.requires_confirmation and item.ref in unconfirmed:
                continue
            action = "delete" if item.action is ItemAction.DELETE else "run"
            owner = other_owners.get(ClusterRef(step.cluster, item.ref), "")
            note = f" (belongs to {owner})" if owner else ""
            yield f"  {name:{width}}  {action:6}  {item.ref}{note}"
            name = ""
    for ref in retained:
        reason = "needs confirmation" if ref in unconfirmed else "Delete=false"
        yield f"  {'':{width}}  keep    {ref} ({reason})"
