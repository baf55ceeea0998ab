"""Rows from files: those that tidegate brings, and those of users, with a line for each mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from tidegate.documents import Document, FieldPath, find_places, read
from tidegate.errors import DocumentError, OperatorsError, Place, TidegateError, foreign
from tidegate.knowledge.stages import shows
from tidegate.knowledge.templates import FOR, IF, check_template
from tidegate.model.moment import parse_duration
from tidegate.model.objects import Json
from tidegate.model.operators import Check, Hold, Knowledge, Operator, Row, Stage

ROWS = Path(__file__).with_name("rows")
KEYS = ("operators", "rows", "holds")
_T = TypeVar("_T")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_TOLD = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_MISSING = re.compile(r"Object missing required field `(.+)`")
_WRONG = re.compile(r"Expected (.+), got (.+)")
_WORDS = {
    "array": "a list",
    "object": "a mapping",
    "str": "text",
    "int": "a whole number",
    "bool": "`true` or `false`",
    "null": "nothing",
}


class _RowError(Exception):
    """A mistake in a row, and the path to it from the row."""

    def __init__(self, error: OperatorsError, path: FieldPath) -> None:
        super().__init__(error.problem)
        self.error = error
        self.path = path


@cache
def builtin() -> Knowledge:
    """What tidegate brings."""
    known = Knowledge()
    for file in sorted(ROWS.glob("*.yaml")):
        known = known.and_more(read_knowledge(file.read_bytes(), file.name))
    return known


def read_knowledge(text: bytes, name: str) -> Knowledge:
    """What a file knows. Raises one ExceptionGroup with an error for each wrong entry."""
    try:
        documents = read(text, name)
    except DocumentError as error:
        raise _refusal(name, [error]) from error
    wrong: list[tuple[_RowError, Document]] = []
    known = Knowledge(
        operators=_read_all(documents, "operators", _read_operator, wrong),
        rows=_read_all(documents, "rows", _read_row, wrong),
        holds=_read_all(documents, "holds", _read_hold, wrong),
    )
    wrong += _unknown_keys(documents)
    errors = [*_placed(text, wrong), *_duplicates(documents)]
    if errors:
        raise _refusal(name, sorted(errors, key=lambda error: error.where or Place("")))
    return known


def _read_all(
    documents: Iterable[Document],
    key: str,
    read_one: Callable[[Json], _T],
    wrong: list[tuple[_RowError, Document]],
) -> tuple[_T, ...]:
    entries: list[_T] = []
    for document in documents:
        for path, body in _entries_in(document, key, wrong):
            try:
                entries.append(read_one(body))
            except _RowError as trouble:
                wrong.append((_RowError(trouble.error, (*path, *trouble.path)), document))
    return tuple(entries)


def _unknown_keys(documents: Iterable[Document]) -> Iterator[tuple[_RowError, Document]]:
    for document in documents:
        for one in document.body:
            if one not in KEYS:
                problem = f"a file of rows has no key `{foreign(one)}`"
                hint = "it has `operators`, `rows` and `holds`"
                error = OperatorsError("operators.key", problem, hint=hint)
                yield _RowError(error, (one,)), document


def _entries_in(
    document: Document, key: str, wrong: list[tuple[_RowError, Document]]
) -> Iterator[tuple[FieldPath, Json]]:
    entries = document.body.get(key)
    if isinstance(entries, list):
        yield from (((key, place), entry) for place, entry in enumerate(entries))
    elif entries is not None:
        error = OperatorsError("operators.type", f"`{key}` must be a list")
        wrong.append((_RowError(error, (key,)), document))


def _read_hold(body: Json) -> Hold:
    return _convert(body, Hold)


def _read_operator(body: Json) -> Operator:
    return _convert(body, Operator)


def _convert(body: Json, noun: type[_T]) -> _T:
    try:
        return msgspec.convert(body, noun)
    except msgspec.ValidationError as error:
        raise _told(str(error)) from error


def _read_row(body: Json) -> Row:
    row = _convert(_with_spans(body), Row)
    _check_stages(row.stages)
    _check_paths(row)
    if not row.source.strip():
        problem = "a row must say where its facts come from"
        raise _RowError(OperatorsError("operators.value", problem), ("source",))
    return row


def _with_spans(body: Json) -> Json:
    """The durations of a row as milliseconds."""
    stages = body.get("stages") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(stages, list):
        return body
    read_stages = [_with_paces(stage, ("stages", place)) for place, stage in enumerate(stages)]
    return {**body, "stages": read_stages}


def _with_paces(stage: Json, path: FieldPath) -> Json:
    """The durations of a stage: its own, and those of its paces."""
    paces = stage.get("paces") if isinstance(stage, dict) else None
    if not isinstance(stage, dict) or not isinstance(paces, list):
        return _with_span(stage, path)
    spots = ((*path, "paces", place) for place in range(len(paces)))
    read_paces = [_with_span(pace, spot) for pace, spot in zip(paces, spots, strict=True)]
    return _with_span({**stage, "paces": read_paces}, path)


def _with_span(part: Json, path: FieldPath) -> Json:
    if not isinstance(part, dict) or part.get("after") is None:
        return part
    written = part["after"]
    try:
        span = parse_duration(written if isinstance(written, str) else "")
    except ValueError as error:
        raise _no_span(written, str(error), path) from error
    if span < 0:
        raise _no_span(written, "less than nothing", path)
    return {**part, "after": span}


def _no_span(written: Json, why: str, path: FieldPath) -> _RowError:
    problem = f"`after` is `{foreign(str(written))}`, which is {why}"
    hint = "write it like `250ms`, `2s` or `1m30s`"
    error = OperatorsError("operators.duration", problem, hint=hint)
    return _RowError(error, (*path, "after"))


def _check_stages(stages: tuple[Stage, ...]) -> None:
    if not stages:
        error = OperatorsError("operators.value", "a row needs at least one stage")
        raise _RowError(error, ("stages",))
    for place, stage in enumerate(stages):
        for later in stages[place + 1 :]:
            if shows(cast("Json", stage.writes), cast("Json", later.writes)):
                names = f"`{foreign(stage.name)}` and `{foreign(later.name)}`"
                problem = f"the stages {names} write the same status"
                hint = "let them differ: only the status tells how far an object has come"
                error = OperatorsError("operators.stages", problem, hint=hint)
                raise _RowError(error, ("stages", place))


def _check_paths(row: Row) -> None:
    for path, template in (*_templates(row), *_checks(row)):
        try:
            check_template(template)
        except ValueError as error:
            problem = foreign(str(error))
            raise _RowError(OperatorsError("operators.path", problem), path) from error


def _templates(row: Row) -> Iterator[tuple[FieldPath, object]]:
    """Every template of a row, with its path."""
    for place, need in enumerate(row.needs):
        fields: tuple[object, ...] = (need.kind, need.name, need.group, need.namespace, need.unmet)
        yield from ((("needs", place), field) for field in fields)
    for place, service in enumerate(row.services):
        yield ("services", place), [service.name, service.selector]
    for place, stage in enumerate(row.stages):
        yield ("stages", place, "writes"), stage.writes
        for index, product in enumerate(stage.produces):
            yield ("stages", place, "produces", index), product.makes


def _checks(row: Row) -> Iterator[tuple[FieldPath, object]]:
    """Every path that a row names outside of templates, as a template, with its own path."""
    for index, check in enumerate(row.ready_when):
        yield ("ready_when", index), {IF: check.place}
    if row.observed:
        yield ("observed",), {IF: row.observed}
    for place, need in enumerate(row.needs):
        yield from _asked(("needs", place), need.each, need.when)
    for place, service in enumerate(row.services):
        yield from _asked(("services", place), "", service.when)
    for place, stage in enumerate(row.stages):
        for index, product in enumerate(stage.produces):
            spot: FieldPath = ("stages", place, "produces", index)
            yield from _asked(spot, product.each, product.when)


def _asked(
    spot: FieldPath, each: str, when: tuple[Check, ...]
) -> Iterator[tuple[FieldPath, object]]:
    if each:
        yield (*spot, "each"), {FOR: each}
    for index, check in enumerate(when):
        yield (*spot, "when", index), {IF: check.place}


def _told(message: str) -> _RowError:
    """What msgspec found, in our words."""
    told = _TOLD.fullmatch(message)
    what, spot = (told["what"], told["path"] or "") if told else (message, "")
    path: FieldPath = tuple(
        int(found[2]) if found[2] else found[1] for found in _STEP.finditer(spot)
    )
    if found := _UNKNOWN.fullmatch(what):
        problem = f"there is no key `{foreign(found[1])}` here"
        return _RowError(OperatorsError("operators.key", problem), (*path, found[1]))
    if found := _MISSING.fullmatch(what):
        problem = f"the key `{foreign(found[1])}` is missing"
        return _RowError(OperatorsError("operators.missing", problem), path)
    if found := _WRONG.fullmatch(what):
        named = f"`{path[-1]}`" if path else "a row"
        wanted, given = (_in_words(part) for part in found.groups())
        problem = f"{named} must be {wanted}, not {given}"
        return _RowError(OperatorsError("operators.type", problem), path)
    return _RowError(OperatorsError("operators.value", foreign(what)), path)


def _in_words(types: str) -> str:
    """msgspec's names of types as people say them."""
    parts = types.strip("`").split(" | ")
    return " or ".join(_WORDS.get(part, f"`{part}`") for part in parts)


def _placed(text: bytes, wrong: Sequence[tuple[_RowError, Document]]) -> list[TidegateError]:
    places = find_places(text, [(document, trouble.path) for trouble, document in wrong])
    errors: list[TidegateError] = []
    for (trouble, _), place in zip(wrong, places, strict=True):
        trouble.error.where = place
        errors.append(trouble.error)
    return errors


def _duplicates(documents: Iterable[Document]) -> Iterator[TidegateError]:
    for document in documents:
        for twice in document.duplicates:
            key = foreign(str(twice.path[-1]))
            problem = f"`{key}` is written twice, first in line {twice.first.line}"
            hint = "remove one of the two"
            yield OperatorsError("operators.duplicate", problem, where=twice.last, hint=hint)


def _refusal(name: str, errors: Sequence[TidegateError]) -> ExceptionGroup[TidegateError]:
    return ExceptionGroup(f"rows of {name} cannot be used", errors)
