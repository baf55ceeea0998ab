"""Jobs and hooks of units, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.unit import UnitId
from tidegate.report.proof import stamped
from tidegate.report.tables import table_lines

HEADS = ("UNIT", "STEP", "OBJECT", "HOOK", "STATUS", "FINISHED")
SPARED = ("HOOK", "FINISHED", "STEP", "UNIT")
"""Columns that are left out first where there is little room."""


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A Job or a hook: its step, whether it is a hook, and how it stands in the cluster."""

    unit: UnitId
    step: str
    ref: Ref
    is_hook: bool
    status: str = ""
    finished: Ms | None = None


def job_lines(rows: Iterable[JobRow], room: int | None = None) -> Iterator[str]:
    cells = [
        (
            str(row.unit),
            row.step,
            str(row.ref),
            "yes" if row.is_hook else "no",
            row.status or "-",
            "-" if row.finished is None else stamped(row.finished),
        )
        for row in rows
    ]
    if not cells:
        yield "there are no Jobs and no hooks here"
        return
    yield from table_lines(HEADS, cells, room, SPARED)


def job_document(row: JobRow) -> dict[str, Json]:
    kind = row.ref.kind
    return {
        "unit": str(row.unit),
        "step": row.step,
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "namespace": row.ref.namespace,
        "name": row.ref.name,
        "hook": row.is_hook,
        "status": row.status or None,
        "finished": None if row.finished is None else stamped(row.finished),
    }
