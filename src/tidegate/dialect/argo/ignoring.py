"""Argo CD's list of differences to ignore, of a file or of an Application: entries and mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias, cast

import msgspec

from tidegate.documents.decoding import Flaw, decode
from tidegate.errors import DialectError, foreign
from tidegate.model.ignoring import Ignored
from tidegate.model.objects import Json
from tidegate.model.reading import mapping

POINTERS, EXPRESSIONS, MANAGERS = "jsonPointers", "jqPathExpressions", "managedFieldsManagers"
Check: TypeAlias = Callable[[str], None]
"""Raises a `DialectError` for what is no expression of jq's."""


class _Entry(Ignored, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry in Argo CD's words."""

    pointers: tuple[str, ...] = msgspec.field(default=(), name=POINTERS)
    expressions: tuple[str, ...] = msgspec.field(default=(), name=EXPRESSIONS)
    managers: tuple[str, ...] = msgspec.field(default=(), name=MANAGERS)


_FIELDS = frozenset(_Entry.__struct_encode_fields__)


class _Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: tuple[_Entry, ...] = msgspec.field(default=(), name="ignoreDifferences")


_File = tuple[_Entry, ...] | _Named


def read_ignored(content: bytes, name: str, check: Check) -> tuple[Ignored, ...]:
    """The entries of a file. Raises one ExceptionGroup with an error for each mistake."""
    noun = "list of differences to ignore"
    flaws = partial(_flaws, check)
    files = decode(content, name, cast("type[_File]", _File), noun=noun, check=flaws)
    return tuple(_plain(entry) for file in files for entry in _entries(file))


def take_ignored(entries: Sequence[Json]) -> tuple[tuple[Ignored, ...], tuple[Flaw, ...]]:
    """The entries of an Application, and what is wrong with them. jq's expressions are not checked.

    Fields that are not known, and entries whose types are wrong, are left out without a word.
    """
    taken: list[Ignored] = []
    flaws: list[Flaw] = []
    for place, body in enumerate(entries):
        known = {key: one for key, one in mapping(body).items() if key in _FIELDS and one}
        try:
            entry = msgspec.convert(known, _Entry)
        except msgspec.ValidationError:
            continue
        taken.append(_plain(entry))
        flaws += (((place, *path), flaw) for path, flaw in _mistakes(entry, lambda _: None))
    return tuple(taken), tuple(flaws)


def _plain(entry: _Entry) -> Ignored:
    return Ignored(**msgspec.structs.asdict(entry))


def _entries(file: _File) -> tuple[_Entry, ...]:
    return file.entries if isinstance(file, _Named) else file


def _flaws(check: Check, file: _File) -> Iterator[Flaw]:
    top = ("ignoreDifferences",) if isinstance(file, _Named) else ()
    for place, entry in enumerate(_entries(file)):
        for path, error in _mistakes(entry, check):
            yield (*top, place, *path), error


def _mistakes(entry: _Entry, check: Check) -> Iterator[Flaw]:
    if not entry.kind:
        yield ("kind",), _mistake("`kind` is empty", 'write the kind, or `"*"` for all')
    if not (entry.pointers or entry.expressions or entry.managers):
        hint = f"write one of `{POINTERS}`, `{EXPRESSIONS}`, `{MANAGERS}`"
        yield (), _mistake("an entry names no field", hint)
    for place, pointer in enumerate(entry.pointers):
        if not pointer.startswith("/"):
            problem = f"`{foreign(pointer)}` is no JSON pointer"
            yield (POINTERS, place), _mistake(problem, "write it like `/spec/replicas`")
    for place, expression in enumerate(entry.expressions):
        try:
            check(expression)
        except DialectError as error:
            yield (EXPRESSIONS, place), error


def _mistake(problem: str, hint: str) -> DialectError:
    return DialectError("dialect.ignored", problem, hint=hint)
