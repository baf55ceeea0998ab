"""How long operators took: from when all was there that a custom resource needs until it was ready.

Rows say what is needed, who serves a kind, and which condition tells that it is ready; of kinds
without a row, it is the condition Ready. How a time is shared between the stages of a row cannot be
seen: they keep their proportions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.knowledge.catalogue import KnownRows, is_ready
from tidegate.knowledge.references import needs_of
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind
from tidegate.model.operators import EVERY, Row
from tidegate.model.reading import mappings
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.learning.measures import Measures, Whom
from tidegate.sandbox.operators import presence
from tidegate.sandbox.server.store import Stored

USUAL = "Ready"


def measure_operators(
    view: Visible, kinds: Iterable[Kind], known: KnownRows, measures: Measures
) -> None:
    """All that the custom resources of a cluster tell."""
    for kind in kinds:
        row = presence.row_for(known, kind)
        if row is not None:
            for stored in view.all_of(kind):
                _measure(view, stored, row, known, measures)


def _measure(view: Visible, stored: Stored, row: Row, known: KnownRows, measures: Measures) -> None:
    kind = stored.ref.kind
    ready = _ready_since(stored, row)
    if ready is None:
        if row.group == EVERY or is_ready(row, stored.body):
            measures.left_out[f"{kind.name}: no condition tells when it was ready"] += 1
        return
    before = [moment for moment in _beginnings(view, stored, row, known) if moment <= ready]
    if before:
        _share(row, kind, Ms(ready - max(before)), measures)


def _ready_since(stored: Stored, row: Row) -> Ms | None:
    """When it became ready, if it is."""
    if row.group == EVERY:
        return _since(stored, USUAL)
    if not row.ready_when or not is_ready(row, stored.body):
        return None
    named = (check.condition for check in row.ready_when if check.condition and not check.negated)
    moments = [_since(stored, name) for name in named]
    return max((one for one in moments if one is not None), default=None)


def _since(stored: Stored, name: str) -> Ms | None:
    for one in mappings(stored.body, "status", "conditions"):
        if one.get("type") == name and one.get("status") == "True":
            return moment_of(one.get("lastTransitionTime"))
    return None


def _beginnings(view: Visible, stored: Stored, row: Row, known: KnownRows) -> Iterator[Ms]:
    """When each thing was there that has to be: itself, its operator, what it needs."""
    kind = stored.ref.kind
    yield presence.touched(stored)
    server = presence.server_of(known, view, kind)
    if server is not None:
        yield presence.available_since(server)
    for needed in needs_of(row, stored.body, kind):
        found = presence.find_needed(known, view, needed)
        if found is None:
            continue
        other = presence.row_for(known, found.ref.kind)
        ready = _ready_since(found, other) if other is not None else None
        yield presence.touched(found) if ready is None else ready


def _share(row: Row, kind: Kind, span: Ms, measures: Measures) -> None:
    """Give each stage its part of a time."""
    usual = sum(stage.after for stage in row.stages)
    last = row.stages[-1]
    for stage in row.stages:
        part = stage.after / usual if usual else float(stage is last)
        if part:
            whom = Whom(kind=kind.name, group=kind.group, stage=stage.name)
            measures.take("after", whom, Ms(int(span * part + 0.5)))
