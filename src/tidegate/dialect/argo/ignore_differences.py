"""Argo CD's `ignoreDifferences`, of a file or an Application: the entries and their problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias, cast

import msgspec

from tidegate.documents.decoder import FileProblem, decode
from tidegate.errors import DialectError, sanitize
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json
from tidegate.model.units.ignore_differences import IgnoreDifference

POINTERS, EXPRESSIONS, MANAGERS = "jsonPointers", "jqPathExpressions", "managedFieldsManagers"
ExpressionCheck: TypeAlias = Callable[[str], None]
"""Check of a jq expression. Raises a `DialectError` for an invalid one."""


class _Entry(IgnoreDifference, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Entry of `ignoreDifferences`."""

    pointers: tuple[str, ...] = msgspec.field(default=(), name=POINTERS)
    expressions: tuple[str, ...] = msgspec.field(default=(), name=EXPRESSIONS)
    managers: tuple[str, ...] = msgspec.field(default=(), name=MANAGERS)


_FIELDS = frozenset(_Entry.__struct_encode_fields__)


class _NamedList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: tuple[_Entry, ...] = msgspec.field(default=(), name="ignoreDifferences")


_File = tuple[_Entry, ...] | _NamedList


def read_ignore_file(
    content: bytes, name: str, check: ExpressionCheck
) -> tuple[IgnoreDifference, ...]:
    """Read the entries of a file. Raises one ExceptionGroup with an error for each problem."""
    noun = "list of differences to ignore"
    find_problems = partial(_problems, check)
    files = decode(content, name, cast("type[_File]", _File), noun=noun, check=find_problems)
    return tuple(_to_ignore_difference(entry) for file in files for entry in _entries(file))


def parse_ignore_differences(
    entries: Sequence[Json],
) -> tuple[tuple[IgnoreDifference, ...], tuple[FileProblem, ...]]:
    """Parse the entries of an Application and return them with their problems.

    jq expressions are not checked. Unknown fields and entries with wrong types are silently
    left out.
    """
    differences: list[IgnoreDifference] = []
    problems: list[FileProblem] = []
    for index, body in enumerate(entries):
        fields = {
            key: value for key, value in get_mapping(body).items() if key in _FIELDS and value
        }
        try:
            entry = msgspec.convert(fields, _Entry)
        except msgspec.ValidationError:
            continue
        differences.append(_to_ignore_difference(entry))
        problems += (
            ((index, *path), error) for path, error in _entry_problems(entry, lambda _: None)
        )
    return tuple(differences), tuple(problems)


def _to_ignore_difference(entry: _Entry) -> IgnoreDifference:
    return IgnoreDifference(**msgspec.structs.asdict(entry))


def _entries(file: _File) -> tuple[_Entry, ...]:
    return file.entries if isinstance(file, _NamedList) else file


def _problems(check: ExpressionCheck, file: _File) -> Iterator[FileProblem]:
    top = ("ignoreDifferences",) if isinstance(file, _NamedList) else ()
    for index, entry in enumerate(_entries(file)):
        for path, error in _entry_problems(entry, check):
            yield (*top, index, *path), error


def _entry_problems(entry: _Entry, check: ExpressionCheck) -> Iterator[FileProblem]:
    if not entry.kind:
        yield ("kind",), _entry_error("`kind` is empty", 'set a kind, or `"*"` for all kinds')
    if not (entry.pointers or entry.expressions or entry.managers):
        hint = f"add one of `{POINTERS}`, `{EXPRESSIONS}`, `{MANAGERS}`"
        yield (), _entry_error("the entry selects no fields", hint)
    for index, pointer in enumerate(entry.pointers):
        if not pointer.startswith("/"):
            problem = f"`{sanitize(pointer)}` is not a JSON pointer"
            yield (
                (POINTERS, index),
                _entry_error(problem, "write a pointer such as `/spec/replicas`"),
            )
    for index, expression in enumerate(entry.expressions):
        try:
            check(expression)
        except DialectError as error:
            yield (EXPRESSIONS, index), error


def _entry_error(problem: str, hint: str) -> DialectError:
    return DialectError("dialect.ignored", problem, hint=hint)
