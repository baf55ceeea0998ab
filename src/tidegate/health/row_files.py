"""Health rows from files, with a place for each mistake."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.documents import Document, FieldPath, find_places, read
from tidegate.errors import DocumentError, OperatorsError, TidegateError, foreign
from tidegate.health.rows import HealthRow
from tidegate.model.checks import parse_path
from tidegate.model.objects import Json


def read_health_rows(content: bytes, name: str) -> tuple[HealthRow, ...]:
    """The rows of a file. Raises one ExceptionGroup with an error for each wrong row."""
    try:
        documents = read(content, name)
    except DocumentError as error:
        raise _refusal(name, [error]) from error
    rows: list[HealthRow] = []
    wrong: list[tuple[OperatorsError, Document, FieldPath]] = []
    for document in documents:
        for path, entry in _entries(document):
            try:
                rows.append(_read_row(entry))
            except (msgspec.ValidationError, ValueError) as error:
                wrong.append((_row_error(str(error)), document, path))
    if wrong:
        places = find_places(content, [(document, path) for _, document, path in wrong])
        for (trouble, _, _), place in zip(wrong, places, strict=True):
            trouble.where = place
        raise _refusal(name, [trouble for trouble, _, _ in wrong])
    return tuple(rows)


def _entries(document: Document) -> Iterator[tuple[FieldPath, Json]]:
    entries = document.body.get("rows")
    if not isinstance(entries, list) or len(document.body) > 1:
        yield (), entries
        return
    yield from ((("rows", place), entry) for place, entry in enumerate(entries))


def _read_row(entry: Json) -> HealthRow:
    row = msgspec.convert(entry, HealthRow)
    paths = [check.place for case in row.cases for check in case.when]
    paths += [case.tells for case in (*row.cases, row.otherwise) if case.tells]
    for path in (*paths, *([row.observed] if row.observed else ())):
        parse_path(path)
    return row


def _row_error(problem: str) -> OperatorsError:
    hint = "a file has one key, `rows`; docs/reference/health-rows.md says what a row has"
    return OperatorsError("health.row", f"this is no row: {foreign(problem)}", hint=hint)


def _refusal(name: str, errors: list[TidegateError]) -> ExceptionGroup[TidegateError]:
    return ExceptionGroup(f"rows of {name} cannot be used", errors)
