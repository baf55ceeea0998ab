"""Durations of operators: from when all needs of a custom resource exist until it is ready.

Rows define the needs, the operator of a kind, and the condition that shows readiness; for kinds
without a row it is the condition Ready. The durations of single stages cannot be observed: the
total is divided in the proportions of the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.knowledge.catalog import KindCatalog, is_ready
from tidegate.knowledge.references import list_needs
from tidegate.model.k8s.objects import Kind
from tidegate.model.operators.rows import WILDCARD, KindRow
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.measurements.measures import Measurements, RuleSelector
from tidegate.sandbox.measurements.pods import true_since
from tidegate.sandbox.operators import availability
from tidegate.sandbox.server.store import StoredObject

DEFAULT_CONDITION = "Ready"


def measure_operators(
    reader: ObjectReader, kinds: Iterable[Kind], catalog: KindCatalog, measurements: Measurements
) -> None:
    """Measure all custom resources of these kinds."""
    for kind in kinds:
        row = availability.row_for(catalog, kind)
        if row is not None:
            for stored in reader.list_objects(kind):
                _measure_resource(reader, stored, row, catalog, measurements)


def _measure_resource(
    reader: ObjectReader,
    stored: StoredObject,
    row: KindRow,
    catalog: KindCatalog,
    measurements: Measurements,
) -> None:
    kind = stored.ref.kind
    ready_at = _ready_at(stored, row)
    if ready_at is None:
        if row.group == WILDCARD or is_ready(row, stored.body):
            measurements.skipped[f"{kind.name}: no condition has the time when it was ready"] += 1
        return
    start_times = [time for time in _start_times(reader, stored, row, catalog) if time <= ready_at]
    if start_times:
        _split_by_stage(row, kind, Ms(ready_at - max(start_times)), measurements)


def _ready_at(stored: StoredObject, row: KindRow) -> Ms | None:
    """Return since when a custom resource is ready, or None."""
    if row.group == WILDCARD:
        return true_since(stored, DEFAULT_CONDITION)
    if not row.ready_when or not is_ready(row, stored.body):
        return None
    conditions = (
        check.condition for check in row.ready_when if check.condition and not check.negated
    )
    times = [true_since(stored, name) for name in conditions]
    return max((time for time in times if time is not None), default=None)


def _start_times(
    reader: ObjectReader, stored: StoredObject, row: KindRow, catalog: KindCatalog
) -> Iterator[Ms]:
    """Yield the start of each requirement: the object, its operator, and the objects it needs."""
    kind = stored.ref.kind
    yield availability.last_changed(stored)
    operator = availability.find_operator(catalog, reader, kind)
    if operator is not None:
        yield availability.available_since(operator)
    for need in list_needs(row, stored.body, kind):
        needed_object = availability.find_needed(catalog, reader, need)
        if needed_object is None:
            continue
        needed_row = availability.row_for(catalog, needed_object.ref.kind)
        ready_at = _ready_at(needed_object, needed_row) if needed_row is not None else None
        yield availability.last_changed(needed_object) if ready_at is None else ready_at


def _split_by_stage(row: KindRow, kind: Kind, duration: Ms, measurements: Measurements) -> None:
    """Divide a duration among the stages of a row."""
    total = sum(stage.after for stage in row.stages)
    last = row.stages[-1]
    for stage in row.stages:
        share = stage.after / total if total else float(stage is last)
        if share:
            selector = RuleSelector(kind=kind.name, group=kind.group, stage=stage.name)
            measurements.record("after", selector, Ms(int(duration * share + 0.5)))
