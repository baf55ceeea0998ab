"""The old form of customizations: one key of the ConfigMap, whose value is YAML again.

Lines in that text become lines of the file, where the text stands in the file as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tidegate.documents import Document, find_places, read
from tidegate.errors import DocumentError, OperatorsError, Place, TidegateError, foreign
from tidegate.health.lua.patterns import check_key
from tidegate.health.lua.rules import Script
from tidegate.model.objects import Json

SCRIPT, LIBRARIES = "health.lua", "health.lua.useOpenLibs"


def read_old_form(text: str, content: bytes, where: Place) -> dict[str, Script]:
    """Overrides by key. Raises one ExceptionGroup with an error for each mistake.

    `where`: the place of the text's own key in the file that holds `content`.
    """
    placing = _Placing(text, content, where)
    try:
        documents = read(text, where.name)
    except DocumentError as error:
        error.where = placing.shifted(error.where)
        raise ExceptionGroup("not YAML", [error]) from error
    overrides: dict[str, Script] = {}
    wrong: list[TidegateError] = []
    for key, entry, place in placing.entries(documents[:1]):
        try:
            overrides[key] = _read_entry(key, entry, place)
        except OperatorsError as error:
            wrong.append(error)
    if wrong:
        raise ExceptionGroup("wrong entries", wrong)
    return overrides


def _read_entry(key: str, entry: Json, where: Place) -> Script:
    check_key(key, where)
    if not isinstance(entry, dict):
        problem = f"the entry `{foreign(key)}` must be a mapping"
        hint = f"its script stands under `{SCRIPT}`"
        raise OperatorsError("health.lua.value", problem, where=where, hint=hint)
    script, libraries = entry.get(SCRIPT) or "", entry.get(LIBRARIES) or False
    if not isinstance(script, str):
        problem = f"`{SCRIPT}` of `{foreign(key)}` must be a text"
        raise OperatorsError("health.lua.value", problem, where=where)
    if not isinstance(libraries, bool):
        problem = f"`{LIBRARIES}` of `{foreign(key)}` must be true or false"
        raise OperatorsError("health.lua.value", problem, where=where)
    return Script(script, libraries, where)


class _Placing:
    """Finds in the file what stands in a text of it."""

    def __init__(self, text: str, content: bytes, where: Place) -> None:
        self._text = text
        self._inner = text.splitlines()
        self._outer = content.decode(errors="replace").splitlines()
        self._where = where

    def entries(self, documents: Iterable[Document]) -> Iterator[tuple[str, Json, Place]]:
        """Keys and values of mappings, each with its place."""
        listed = [(one, key) for one in documents for key in one.body]
        places = find_places(self._text, [(one, (key,)) for one, key in listed])
        for (document, key), inner in zip(listed, places, strict=True):
            yield key, document.body[key], self.shifted(inner)

    def shifted(self, inner: Place | None) -> Place:
        """The line in the file, if the same text stands there; else the line of the key."""
        if inner is None or not 0 < inner.line <= len(self._inner):
            return self._where
        line = self._where.line + inner.line
        written = self._outer[line - 1].strip() if line <= len(self._outer) else None
        if written != self._inner[inner.line - 1].strip():
            return self._where
        return replace(self._where, line=line, column=0, field=inner.field)
