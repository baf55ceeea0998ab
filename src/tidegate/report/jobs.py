"""Jobs and hooks of units as a table and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.model.k8s.objects import Json
from tidegate.model.views.jobs import JobRow
from tidegate.report.tables import table_lines
from tidegate.report.verification import display_timestamp

COLUMNS = ("UNIT", "STEP", "OBJECT", "HOOK", "STATUS", "FINISHED")
OPTIONAL_COLUMNS = ("HOOK", "FINISHED", "STEP", "UNIT")
"""Columns that are dropped first on a narrow terminal."""


def job_lines(rows: Iterable[JobRow], max_width: int | None = None) -> Iterator[str]:
    cells = [
        (
            str(row.unit),
            row.step,
            str(row.ref),
            "yes" if row.is_hook else "no",
            row.status or "-",
            "-" if row.finished is None else display_timestamp(row.finished),
        )
        for row in rows
    ]
    if not cells:
        yield "no Jobs or hooks found"
        return
    yield from table_lines(COLUMNS, cells, max_width, OPTIONAL_COLUMNS)


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
        "finished": None if row.finished is None else display_timestamp(row.finished),
    }
