"""Argo CD's list of differences to ignore, from a file: entries with a place for each mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec

from tidegate.documents.decoding import Flaw, decode
from tidegate.errors import DialectError, foreign
from tidegate.model.ignoring import Ignored
from tidegate.model.jq_paths import parse

POINTERS, EXPRESSIONS, MANAGERS = "jsonPointers", "jqPathExpressions", "managedFieldsManagers"


class _Entry(Ignored, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry in Argo CD's words."""

    pointers: tuple[str, ...] = msgspec.field(default=(), name=POINTERS)
    expressions: tuple[str, ...] = msgspec.field(default=(), name=EXPRESSIONS)
    managers: tuple[str, ...] = msgspec.field(default=(), name=MANAGERS)


class _Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: tuple[_Entry, ...] = msgspec.field(default=(), name="ignoreDifferences")


_File = tuple[_Entry, ...] | _Named


def read_ignored(content: bytes, name: str) -> tuple[Ignored, ...]:
    """The entries of a file. Raises one ExceptionGroup with an error for each mistake."""
    noun = "list of differences to ignore"
    files = decode(content, name, cast("type[_File]", _File), noun=noun, check=_flaws)
    return tuple(
        Ignored(**msgspec.structs.asdict(entry)) for file in files for entry in _entries(file)
    )


def _entries(file: _File) -> tuple[_Entry, ...]:
    return file.entries if isinstance(file, _Named) else file


def _flaws(file: _File) -> Iterator[Flaw]:
    top = ("ignoreDifferences",) if isinstance(file, _Named) else ()
    for place, entry in enumerate(_entries(file)):
        for path, problem, hint in _mistakes(entry):
            yield (*top, place, *path), DialectError("dialect.ignored", problem, hint=hint)


def _mistakes(entry: _Entry) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    if not entry.kind:
        yield ("kind",), "`kind` is empty", 'write the kind, or `"*"` for all'
    if not (entry.pointers or entry.expressions or entry.managers):
        hint = f"write one of `{POINTERS}`, `{EXPRESSIONS}`, `{MANAGERS}`"
        yield (), "an entry names no field", hint
    for place, pointer in enumerate(entry.pointers):
        if not pointer.startswith("/"):
            problem = f"`{foreign(pointer)}` is no JSON pointer"
            yield (POINTERS, place), problem, "write it like `/spec/replicas`"
    for place, expression in enumerate(entry.expressions):
        try:
            parse(expression)
        except ValueError as error:
            problem = f"`{foreign(expression)}` is no path that can be read"
            yield (EXPRESSIONS, place), problem, str(error)
