"""The interpreter of rows: one controller for all operators.

It reads a custom resource and the workload that serves its kind. Without an available workload
it does nothing. While a need is not satisfied, it writes the status that the real operator
would write. Otherwise it advances from stage to stage, each after its delay: it creates the
objects of the stage and writes its status. A profile can change the delays.

The current stage is read from the status, and the time of the next stage from timestamps in the
cluster: no state is kept between two reconciliations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.references import NeededObject, list_needs
from tidegate.knowledge.templates import NOW, find_counterpart, make_scope, render, status_matches
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.operators.checks import all_checks_pass
from tidegate.model.operators.rows import KindRow, Stage, StageDuration
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.writes import EventRecorder, set_status
from tidegate.sandbox.node.profile import StageRule
from tidegate.sandbox.operators import availability
from tidegate.sandbox.operators.availability import available_since, last_changed
from tidegate.sandbox.operators.index import OperatorIndex
from tidegate.sandbox.operators.products import (
    NAMED_ANNOTATION,
    OPERATOR_MANAGER,
    simulated_products,
    write_products,
)
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import NotFound, NotServed, is_error

RETRY = Ms(10 * SECOND)
RECORDER = EventRecorder(OPERATOR_MANAGER)


def stage_status(template: dict[str, object], scope: JsonObject) -> Json:
    """Return the status that a stage writes, with the condition fields that most kinds require."""
    return _with_time_placeholders(render(template, scope))


def _with_time_placeholders(value: Json) -> Json:
    if isinstance(value, list):
        return [_with_time_placeholders(item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {key: _with_time_placeholders(inner) for key, inner in value.items()}
    if "type" in filled and "status" in filled:
        filled.setdefault("lastTransitionTime", NOW)
        if "reason" in filled:
            filled.setdefault("message", "")
    return filled


def fill_times(desired: Json, actual: Json, now: Ms) -> Json:
    """Return a status to write: times are kept, except in a condition whose status changed."""
    if desired == NOW:
        return actual if isinstance(actual, str) and actual else format_rfc3339(now)
    if isinstance(desired, dict):
        existing: JsonObject = actual if isinstance(actual, dict) else {}
        if "type" in desired and desired.get("status") != existing.get("status"):
            existing = {}
        return {key: fill_times(value, existing.get(key), now) for key, value in desired.items()}
    if isinstance(desired, list):
        old: list[Json] = actual if isinstance(actual, list) else []
        padded = [*old, *([None] * len(desired))]
        return [
            fill_times(item, find_counterpart(item, index, padded), now)
            for index, item in enumerate(desired)
        ]
    return desired


def apply_stage_rules(
    rows: Iterable[KindRow], rules: Sequence[StageRule], factor: float = 1
) -> tuple[KindRow, ...]:
    """Return the rows with delays multiplied by `factor`, and the stage rules of a profile."""
    return tuple(_apply_to_row(row, rules, factor) for row in rows)


def _apply_to_row(row: KindRow, rules: Sequence[StageRule], factor: float) -> KindRow:
    matching = [rule for rule in rules if rule.when.can_match(row)]
    if not matching and factor == 1:
        return row
    return msgspec.structs.replace(
        row, stages=tuple(_apply_to_stage(stage, matching, factor) for stage in row.stages)
    )


def _apply_to_stage(stage: Stage, rules: Sequence[StageRule], factor: float) -> Stage:
    paces = (
        StageDuration(
            after=rule.after,
            group=rule.when.group,
            kind=rule.when.kind,
            namespace=rule.when.namespace,
            name=rule.when.name,
        )
        for rule in rules
        if fnmatchcase(stage.name, rule.when.stage)
    )
    after = Ms(int(stage.after * factor + 0.5))
    return msgspec.structs.replace(stage, after=after, paces=(*stage.paces, *paces))


def operator_controller(rows: Iterable[KindRow]) -> Controller:
    """Return one controller for these rows; of two rows for a kind the last counts."""
    interpreter = _RowInterpreter(KindCatalog.from_rows(rows))
    return Controller("operators", interpreter.reconcile, interpreter.map_event)


class _ResourceState(NamedTuple):
    """A custom resource as read for one reconciliation."""

    stored: StoredObject
    """The custom resource."""
    row: KindRow
    """The row of its kind."""
    scope: JsonObject
    """The values that templates can use."""
    needed: tuple[NeededObject, ...]
    """The objects that it needs."""
    since: Ms
    """Time since which the object and everything it needs are unchanged."""
    has_unknown_keys: bool = False
    """Whether an object it needs is given by name only: the keys of its products are unknown."""


class _RowInterpreter:
    """An interpreter of rows, with one index for each cluster."""

    def __init__(self, catalog: KindCatalog) -> None:
        self.catalog = catalog
        self._indexes: WeakKeyDictionary[ObjectReader, OperatorIndex] = WeakKeyDictionary()

    def _index_for(self, reader: ObjectReader) -> OperatorIndex:
        index = self._indexes.get(reader)
        if index is None:
            index = self._indexes[reader] = OperatorIndex(self.catalog)
        return index

    def map_event(self, reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
        return self._index_for(reader).map_event(reader, event)

    def reconcile(self, reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
        """Reconcile one custom resource."""
        stored = reader.get(ref)
        row = availability.row_for(self.catalog, ref.kind)
        if stored is None or stored.is_deleting or row is None:
            return
        operator = self._index_for(reader).find_operator(reader, ref.kind)
        if operator is None and not row.served_by.outside:
            return
        state = self._read_state(reader, stored, row)
        last_stage = len(row.stages) - 1
        current_stage = _current_stage(state)
        unmet = self._first_unsatisfied(reader, state.needed, is_ready=current_stage == last_stage)
        if unmet is not None:
            yield from _report_unsatisfied(state, unmet, now)
        elif current_stage == last_stage:
            yield from write_products(
                reader,
                stored,
                simulated_products(row, state.scope, has_unknown_keys=state.has_unknown_keys),
            )
        else:
            since = max(available_since(operator), state.since) if operator else state.since
            yield from _advance_stage(reader, state, current_stage + 1, since=since, now=now)

    def _read_state(
        self, reader: ObjectReader, stored: StoredObject, row: KindRow
    ) -> _ResourceState:
        kind = stored.ref.kind
        scope = make_scope(stored.body, kind)
        needed = tuple(list_needs(row, stored.body, kind))
        since, has_unknown_keys = last_changed(stored), False
        for need in needed:
            needed_object = availability.find_needed(self.catalog, reader, need)
            if needed_object is not None:
                since = max(since, last_changed(needed_object))
                scope |= {need.need.alias: needed_object.body} if need.need.alias else {}
                has_unknown_keys = has_unknown_keys or NAMED_ANNOTATION in get_mapping(
                    needed_object.metadata, "annotations"
                )
        return _ResourceState(stored, row, scope, needed, since, has_unknown_keys)

    def _first_unsatisfied(
        self, reader: ObjectReader, needed: tuple[NeededObject, ...], *, is_ready: bool
    ) -> NeededObject | None:
        relevant = (need for need in needed if need.need.lasting or not is_ready)
        return next(
            (
                need
                for need in relevant
                if not availability.is_need_satisfied(self.catalog, reader, need)
            ),
            None,
        )


def _advance_stage(
    reader: ObjectReader, state: _ResourceState, stage_index: int, *, since: Ms, now: Ms
) -> Reconciliation:
    """Advance to the next stage, if its time has come."""
    stage = state.row.stages[stage_index]
    if not all_checks_pass(stage.when, state.scope):
        return
    due_at = Ms(since + stage.duration_for(state.stored.ref))
    if now < due_at:
        yield RequeueAt(due_at)
        return
    products = simulated_products(
        state.row, state.scope, upto=stage_index, has_unknown_keys=state.has_unknown_keys
    )
    was_rejected = yield from write_products(reader, state.stored, products)
    if was_rejected:
        yield RequeueAt(Ms(now + RETRY))
    elif stage.writes:
        yield from _write_status(state.stored, stage_status(stage.writes, state.scope), now)


def _current_stage(state: _ResourceState) -> int:
    """Return the last stage that the status shows; -1 for none."""
    status = state.stored.body.get("status")
    for index in range(len(state.row.stages) - 1, -1, -1):
        if status_matches(status, stage_status(state.row.stages[index].writes, state.scope)):
            return index
    return -1


def _report_unsatisfied(state: _ResourceState, unmet: NeededObject, now: Ms) -> Reconciliation:
    """Write the status that the operator would write while a need is not satisfied."""
    desired = stage_status(unmet.need.unmet, {**state.scope, "need": unmet.scope()})
    if desired and not status_matches(state.stored.body.get("status"), desired):
        yield from _write_status(state.stored, desired, now)


def _write_status(stored: StoredObject, desired: Json, now: Ms) -> Reconciliation:
    """Write the whole status; on the object itself if its kind has no status subresource."""
    status = fill_times(desired, stored.body.get("status"), now)
    outcome = yield set_status(stored, status, manager=OPERATOR_MANAGER)
    if isinstance(outcome, NotFound | NotServed):
        outcome = yield set_status(stored, status, subresource="", manager=OPERATOR_MANAGER)
    if outcome is not None and is_error(outcome):
        yield RECORDER.record_warning(stored, "StatusRefused", outcome.message, now)
