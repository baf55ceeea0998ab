"""Argo CD's list of differences to ignore, from a file: entries with a place for each mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import TypeAlias

import msgspec

from tidegate.documents import Document, FieldPath, find_places, refuse_duplicates
from tidegate.documents.build import build
from tidegate.documents.outline import outline
from tidegate.documents.stream import split
from tidegate.errors import DialectError, DocumentError, TidegateError, foreign
from tidegate.model.ignoring import Ignored
from tidegate.model.objects import Json

TOP = "ignoreDifferences"
TEXTS = ("group", "kind", "name", "namespace")
POINTERS, EXPRESSIONS, MANAGERS = "jsonPointers", "jqPathExpressions", "managedFieldsManagers"
LISTS = (POINTERS, EXPRESSIONS, MANAGERS)
Check: TypeAlias = Callable[[str], None]
"""Raises a `DialectError` for what is no expression of jq's."""
Mistake: TypeAlias = tuple[FieldPath, TidegateError]
"""What is wrong with an entry, at the path of the key that says so."""
FORM = f"write a list of entries, or `{TOP}:` with the list below it"


def read_ignored(content: bytes, name: str, check: Check) -> tuple[Ignored, ...]:
    """The entries of a file. Raises one ExceptionGroup with an error for each mistake."""
    found: list[Ignored] = []
    wrong: list[tuple[Document, Mistake]] = []
    try:
        for document, path, entry in _entries(content, name):
            mistakes = list(_mistakes(entry, path, check))
            wrong += [(document, mistake) for mistake in mistakes]
            if not mistakes and isinstance(entry, dict):
                found.append(_read(entry))
    except DocumentError as error:
        raise _refusal(name, [error]) from error
    if wrong:
        places = find_places(content, [(document, path) for document, (path, _) in wrong])
        for (_, (_, told)), place in zip(wrong, places, strict=True):
            told.where = place
        raise _refusal(name, [told for _, (_, told) in wrong])
    return tuple(found)


def _entries(content: bytes, name: str) -> Iterator[tuple[Document, FieldPath, Json]]:
    """Each entry, with the document that it stands in and the path to it."""
    for part in split(content, name):
        built = build(part)
        if built is None or built.value is None:
            continue
        twice = outline(part).duplicates if built.suspicious else ()
        document = Document({}, built.place, part.number, duplicates=twice)
        refuse_duplicates([document])
        path, entries = _list_in(built.value)
        if isinstance(entries, list):
            yield from ((document, (*path, place), entry) for place, entry in enumerate(entries))
        else:
            yield document, path, None


def _list_in(value: Json) -> tuple[FieldPath, Json]:
    if isinstance(value, dict) and list(value) == [TOP]:
        return (TOP,), value[TOP]
    return (), value


def _mistakes(entry: Json, path: FieldPath, check: Check) -> Iterator[Mistake]:
    if not isinstance(entry, dict):
        yield _mistake(path, "this is no list of differences to ignore", FORM)
        return
    for key, value in entry.items():
        yield from _wrong_key(key, value, (*path, key), check)
    if not entry.get("kind"):
        yield _mistake(path, "an entry needs `kind`", 'write the kind, or `"*"` for all')
    if not any(entry.get(key) for key in LISTS):
        keys = ", ".join(f"`{key}`" for key in LISTS)
        yield _mistake(path, "an entry names no field", f"write one of {keys}")


def _wrong_key(key: str, value: Json, path: FieldPath, check: Check) -> Iterator[Mistake]:
    if key in TEXTS:
        if not isinstance(value, str):
            yield _mistake(path, f"`{key}` must be a text", "put it in quotes")
    elif key not in LISTS:
        near = get_close_matches(key, (*TEXTS, *LISTS), n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join((*TEXTS, *LISTS))}"
        yield _mistake(path, f"an entry has no key `{foreign(key)}`", hint)
    elif not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        hint = "write each on a line of its own, after `-`"
        yield _mistake(path, f"`{key}` must be a list of texts", hint)
    else:
        for place, one in enumerate(value):
            yield from _wrong_value(key, str(one), (*path, place), check)


def _wrong_value(key: str, value: str, path: FieldPath, check: Check) -> Iterator[Mistake]:
    if key == POINTERS and not value.startswith("/"):
        problem = f"`{foreign(value)}` is no JSON pointer"
        yield _mistake(path, problem, "write it like `/spec/replicas`")
    if key == EXPRESSIONS:
        try:
            check(value)
        except DialectError as error:
            yield path, error


def _mistake(path: FieldPath, problem: str, hint: str) -> Mistake:
    return path, DialectError("dialect.ignored", problem, hint=hint)


def _read(entry: dict[str, Json]) -> Ignored:
    """An entry without mistakes, as a noun."""
    renamed = {POINTERS: "pointers", EXPRESSIONS: "expressions", MANAGERS: "managers"}
    return msgspec.convert({renamed.get(key, key): entry[key] for key in entry}, Ignored)


def _refusal(name: str, errors: list[TidegateError]) -> ExceptionGroup[TidegateError]:
    return ExceptionGroup(f"differences to ignore in {name} cannot be used", errors)
