"""Health rows from files, with a place for each mistake."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.documents.decoding import FileProblem, decode
from tidegate.errors import KnowledgeError, sanitize
from tidegate.health.rows import HealthRow
from tidegate.model.checks import case_errors, check_errors
from tidegate.model.operators import Check


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: tuple[HealthRow, ...] = ()


def read_health_rows(content: bytes, name: str) -> tuple[HealthRow, ...]:
    """The rows of a file. Raises one ExceptionGroup with an error for each mistake."""
    files = decode(content, name, _File, noun="file of health rows", check=_flaws)
    return tuple(row for file in files for row in file.rows)


def _flaws(file: _File) -> Iterator[FileProblem]:
    for place, row in enumerate(file.rows):
        observed = check_errors([Check(path=row.observed)] if row.observed else ())
        for mistake in (*observed, *case_errors((*row.cases, row.otherwise))):
            yield ("rows", place), KnowledgeError("health.row", sanitize(mistake))
