"""Helm's `--set` language: `image.tag=v1,ports[0].name=http,args={a,b}`.

A line is written into existing values, as Helm does: `list[1]=x` changes the second item of a list
of a values file. The parser of the SDK starts with empty values and loses which numbers are
integers. Here they are `SetInteger`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from tidegate.errors import RenderError, sanitize
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex

MAX_INDEX = 65536
MAX_LEVEL = 30
INT64 = range(-(2**63), 2**63)
_INTEGER = lazy_regex(r"[+-]?[0-9]+", re.ASCII)
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
Values: TypeAlias = dict[str, Json]


class SetInteger(int):
    """An integer of a parameter. In a values file, the same digits are a float for Helm."""

    __slots__ = ()


class _EndOfLineError(Exception):
    """The end of a line at a place where a line may end."""


class _InvalidLineError(Exception):
    """An invalid line. The message does not contain the value, which may be secret."""


def set_typed(line: str, values: Values) -> None:
    """Apply `--set`: digits, `true`, `false` and `null` have their type.

    Like `ParseInto` and `typedVal` in `pkg/strvals/parser.go` of Helm 4.2.4.
    """
    _Writer(line, _typed).write(values)


def set_strings(line: str, values: Values) -> None:
    """Apply `--set-string`: every value is a string.

    Like `ParseIntoString` in `pkg/strvals/parser.go` of Helm 4.2.4.
    """
    _Writer(line, str).write(values)


def set_content(name: str, content: str, values: Values) -> None:
    """Apply `--set-file` with the content of the file.

    Like `ParseIntoFile` in `pkg/strvals/parser.go` of Helm 4.2.4.
    """
    _Writer(f"{name}=-", lambda _: content).write(values)


def set_literal(line: str, values: Values) -> None:
    """Apply `--set-literal`: everything after the first `=` is one string.

    Like `ParseLiteralInto` in `pkg/strvals/literal_parser.go` of Helm 4.2.4.
    """
    _Writer(line, str, literal=True).write(values)


def _typed(text: str) -> Json:
    word = text.casefold()
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if text == "0" or (_INTEGER.fullmatch(text) and not text.startswith("0")):
        number = int(text)
        return SetInteger(number) if number in INT64 else text
    return text


class _Writer:
    """A writer that reads a line from left to right and sets the values."""

    def __init__(self, line: str, read: Callable[[str], Json], *, literal: bool = False) -> None:
        self._line = line
        self._position = 0
        self._read = read
        self._literal = literal

    def write(self, values: Values) -> None:
        try:
            while True:
                self._key(values, 0)
        except _EndOfLineError:
            return
        except _InvalidLineError as error:
            name = sanitize(self._line.partition("=")[0])
            problem = f"cannot set the parameter `{name}`: {error}"
            hint = "write names like `image.tag` or `ports[0].name`; escape a dot in a key as `\\.`"
            raise RenderError("render.helm.parameter", problem, hint=hint) from None

    def _until(self, stops: str) -> tuple[str, str]:
        """Return the text up to a stop character, and which one; empty at the end of the line."""
        text = ""
        while self._position < len(self._line):
            character = self._line[self._position]
            self._position += 1
            if character in stops:
                return text, character
            if character == "\\" and not self._literal:
                if self._position == len(self._line):
                    break
                character = self._line[self._position]
                self._position += 1
            text += character
        return text, ""

    def _key(self, values: Values, level: int) -> None:
        key, stop = self._until("=[." if self._literal else "=[,.")
        match stop:
            case "=":
                self._value(key, values)
            case "[":
                self._index(key, values, level)
            case ".":
                self._nest(key, values, level + 1)
            case _ if key or stop:
                raise _InvalidLineError("it has no value")
            case _:
                raise _EndOfLineError

    def _value(self, key: str, values: Values) -> None:
        is_at_end = self._position == len(self._line)
        _set_key(values, key, self._item())
        if is_at_end and not self._literal:
            raise _EndOfLineError

    def _item(self) -> Json:
        rest = self._line[self._position :]
        if self._literal:
            self._position = len(self._line)
            return rest
        if not rest:
            return ""
        if rest.startswith("{"):
            self._position += 1
            return self._items()
        return self._read(self._until(",")[0])

    def _items(self) -> list[Json]:
        items: list[Json] = []
        while True:
            text, stop = self._until(",}")
            if not stop:
                raise _InvalidLineError("a list must end with `}`")
            items.append(self._read(text))
            if stop == "}":
                self._position += self._line.startswith(",", self._position)
                return items

    def _nest(self, key: str, values: Values, level: int) -> None:
        if level > MAX_LEVEL:
            raise _InvalidLineError(f"it is nested more than {MAX_LEVEL} deep")
        inner = values.get(key, {})
        if not isinstance(inner, dict):
            raise _InvalidLineError(f"`{sanitize(key)}` is not a mapping in the previous values")
        try:
            self._key(inner, level)
            if not inner:
                raise _InvalidLineError(f"`{sanitize(key)}` has no value")
        finally:
            if inner:
                _set_key(values, key, inner)

    def _index(self, key: str, values: Values, level: int) -> None:
        index = self._number()
        items = values.get(key, [])
        if not isinstance(items, list):
            raise _InvalidLineError(f"`{sanitize(key)}` is not a list in the previous values")
        try:
            items = self._in_list(items, index, level)
        finally:
            _set_key(values, key, items)

    def _number(self) -> int:
        text, stop = self._until("]")
        if not stop:
            raise _EndOfLineError
        if not _INTEGER.fullmatch(text) or int(text) not in INT64:
            raise _InvalidLineError("an index must be a number between `[` and `]`")
        if int(text) < 0:
            raise _InvalidLineError("an index must not be negative")
        return int(text)

    def _in_list(self, items: list[Json], index: int, level: int) -> list[Json]:
        text, stop = self._until("[.=")
        if text:
            raise _InvalidLineError("only `.`, `[` or `=` may follow `]`")
        existing = items[index] if index < len(items) else None
        match stop:
            case "=":
                return _set_item(items, index, self._item())
            case "[":
                if not isinstance(existing, list | None):
                    raise _InvalidLineError("an item is not a list in the previous values")
                return _set_item(items, index, self._in_list(existing or [], self._number(), level))
            case ".":
                return self._in_mapping(items, index, level)
            case _:
                raise _EndOfLineError

    def _in_mapping(self, items: list[Json], index: int, level: int) -> list[Json]:
        inner: Values = {}
        if index < len(items):
            existing = items[index]
            if isinstance(existing, dict):
                inner = existing
            else:
                items[index] = inner
        self._key(inner, level)
        return _set_item(items, index, inner)


def _set_key(values: Values, key: str, value: Json) -> None:
    if key:
        values[key] = value


def _set_item(items: list[Json], index: int, value: Json) -> list[Json]:
    """Set an item in place; a list that must grow is copied, as in Go.

    Like `setIndex` in `pkg/strvals/parser.go` of Helm 4.2.4.
    """
    if index > MAX_INDEX:
        raise _InvalidLineError(f"an index must not exceed {MAX_INDEX}")
    if index >= len(items):
        items = items + [None] * (index + 1 - len(items))
    items[index] = value
    return items
