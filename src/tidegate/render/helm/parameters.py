"""Helm's `--set` language: `image.tag=v1,ports[0].name=http,args={a,b}`.

A line is written into values that are there already, as Helm does it: `list[1]=x` changes the
second item of a list that a values file made. That is why the SDK's own parser does not do, which
starts from nothing; and it forgets which numbers were integers. Here they are `Whole`.
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
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
Values: TypeAlias = dict[str, Json]


class SetInteger(int):
    """An integer that a parameter gave. In a values file the same digits are a float for Helm."""

    __slots__ = ()


class _EndError(Exception):
    """The line ends where that is no mistake."""


class _BadError(Exception):
    """The line cannot be read; the text says why, without the value, which may be secret."""


def set_typed(line: str, values: Values) -> None:
    """`--set`: digits, `true`, `false` and `null` mean what they say."""
    _Writer(line, _typed).write(values)


def set_strings(line: str, values: Values) -> None:
    """`--set-string`: every value is a string."""
    _Writer(line, str).write(values)


def set_content(name: str, content: str, values: Values) -> None:
    """`--set-file`, with what stands in the file."""
    _Writer(f"{name}=-", lambda _: content).write(values)


def set_literal(line: str, values: Values) -> None:
    """`--set-literal`: all that stands behind the first `=` is one string."""
    _Writer(line, str, literal=True).write(values)


def _typed(text: str) -> Json:
    word = text.casefold()
    if word in _WORDS:
        return _WORDS[word]
    if text == "0" or (_INTEGER.fullmatch(text) and not text.startswith("0")):
        number = int(text)
        return SetInteger(number) if number in INT64 else text
    return text


class _Writer:
    """Reads one line from left to right and writes as it goes."""

    def __init__(self, line: str, read: Callable[[str], Json], *, literal: bool = False) -> None:
        self._line = line
        self._at = 0
        self._read = read
        self._literal = literal

    def write(self, values: Values) -> None:
        try:
            while True:
                self._key(values, 0)
        except _EndError:
            return
        except _BadError as error:
            name = sanitize(self._line.partition("=")[0])
            problem = f"the parameter `{name}` cannot be set: {error}"
            hint = "names look like `image.tag`, `ports[0].name`; write `\\.` for a dot in a key"
            raise RenderError("render.helm.parameter", problem, hint=hint) from None

    def _until(self, stops: str) -> tuple[str, str]:
        """The text up to one of the stops, and which one; nothing at the end of the line."""
        text = ""
        while self._at < len(self._line):
            mark = self._line[self._at]
            self._at += 1
            if mark in stops:
                return text, mark
            if mark == "\\" and not self._literal:
                if self._at == len(self._line):
                    break
                mark = self._line[self._at]
                self._at += 1
            text += mark
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
                raise _BadError("it has no value")
            case _:
                raise _EndError

    def _value(self, key: str, values: Values) -> None:
        ends = self._at == len(self._line)
        _put(values, key, self._item())
        if ends and not self._literal:
            raise _EndError

    def _item(self) -> Json:
        rest = self._line[self._at :]
        if self._literal:
            self._at = len(self._line)
            return rest
        if not rest:
            return ""
        if rest.startswith("{"):
            self._at += 1
            return self._items()
        return self._read(self._until(",")[0])

    def _items(self) -> list[Json]:
        items: list[Json] = []
        while True:
            text, stop = self._until(",}")
            if not stop:
                raise _BadError("a list must end with `}`")
            items.append(self._read(text))
            if stop == "}":
                self._at += self._line.startswith(",", self._at)
                return items

    def _nest(self, key: str, values: Values, level: int) -> None:
        if level > MAX_LEVEL:
            raise _BadError(f"it is nested more than {MAX_LEVEL} deep")
        inner = values.get(key, {})
        if not isinstance(inner, dict):
            raise _BadError(f"`{sanitize(key)}` is not a mapping in the values so far")
        try:
            self._key(inner, level)
            if not inner:
                raise _BadError(f"`{sanitize(key)}` has no value")
        finally:
            if inner:
                _put(values, key, inner)

    def _index(self, key: str, values: Values, level: int) -> None:
        index = self._number()
        items = values.get(key, [])
        if not isinstance(items, list):
            raise _BadError(f"`{sanitize(key)}` is not a list in the values so far")
        try:
            items = self._in_list(items, index, level)
        finally:
            _put(values, key, items)

    def _number(self) -> int:
        text, stop = self._until("]")
        if not stop:
            raise _EndError
        if not _INTEGER.fullmatch(text) or int(text) not in INT64:
            raise _BadError("an index must be a number in `[` and `]`")
        if int(text) < 0:
            raise _BadError("an index must not be negative")
        return int(text)

    def _in_list(self, items: list[Json], index: int, level: int) -> list[Json]:
        text, stop = self._until("[.=")
        if text:
            raise _BadError("something stands behind `]` that is neither `.`, `[` nor `=`")
        there = items[index] if index < len(items) else None
        match stop:
            case "=":
                return _put_at(items, index, self._item())
            case "[":
                if not isinstance(there, list | None):
                    raise _BadError("an item is not a list in the values so far")
                return _put_at(items, index, self._in_list(there or [], self._number(), level))
            case ".":
                return self._in_mapping(items, index, level)
            case _:
                raise _EndError

    def _in_mapping(self, items: list[Json], index: int, level: int) -> list[Json]:
        inner: Values = {}
        if index < len(items):
            there = items[index]
            if isinstance(there, dict):
                inner = there
            else:
                items[index] = inner
        self._key(inner, level)
        return _put_at(items, index, inner)


def _put(values: Values, key: str, value: Json) -> None:
    if key:
        values[key] = value


def _put_at(items: list[Json], index: int, value: Json) -> list[Json]:
    """In place where there is room; a longer list is a new one, as in Go."""
    if index > MAX_INDEX:
        raise _BadError(f"an index must not be above {MAX_INDEX}")
    if index >= len(items):
        items = items + [None] * (index + 1 - len(items))
    items[index] = value
    return items
