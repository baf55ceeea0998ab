"""Paths in jq's language: the part of it in which people name fields, read without jq.

    .spec.replicas                                   a field
    .data["app.conf"], ."app.conf"                   a name that needs quotes
    .webhooks[].clientConfig.caBundle                of every item; `[]?` where there may be no list
    .spec.ports[0]                                   an item
    .spec.volumes[] | select(.name == "cache")       those of which something holds

A condition has `==` and `!=`, `and`, `or` and brackets, and `.name | startswith("…")` or
`endswith`. What jq would end with an error leads to no place at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.model.objects import Json

Path: TypeAlias = tuple[str | int, ...]
Steps: TypeAlias = tuple["Field | Each | Select", ...]
Condition: TypeAlias = Callable[[Json], bool]
Value: TypeAlias = Callable[[Json], Json]

SUPPORTED = (
    'here are known `.a.b`, `["a"]`, `[0]`, `[]`, `?`, `|` and `select(…)` with `==`, `!=`, `and`,'
    " `or`, `startswith` and `endswith`"
)
KNOWN = 1024
_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?\d+(?:\.\d+)?)|(?P<word>[A-Za-z_]\w*)'
    r"|(?P<sign>==|!=|[.|()\[\]?]))",
    re.ASCII,
)
_LITERALS: dict[str, Json] = {"true": True, "false": False, "null": None}
_ENDS: dict[str, Callable[[str, str], bool]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
}


class Field(NamedTuple):
    """A field by its name or an item by its number; `is_loose`: what has none is passed over."""

    key: str | int
    is_loose: bool


class Each(NamedTuple):
    """Everything in a list or a mapping."""

    is_loose: bool


class Select(NamedTuple):
    holds: Condition


class UnfitError(Exception):
    """A body is not of the shape that a path asks for."""


class NothingError(Exception):
    """A condition asks for what was passed over: nothing can be said of it."""


def places_in(expression: str, body: Json) -> tuple[Path, ...]:
    """The places that an expression names and where something stands."""
    try:
        return tuple(
            path for path, value in _walk(parse(expression), body, ()) if value is not None
        )
    except UnfitError:
        return ()


@lru_cache(maxsize=KNOWN)
def parse(expression: str) -> Steps:
    """The steps of an expression. Raises ValueError for what is none, or is not known here."""
    reader = _Reader(list(_tokens(expression)))
    steps = reader.pipeline()
    if not reader.is_done or not steps:
        raise ValueError(SUPPORTED)
    return steps


def _tokens(expression: str) -> Iterator[str]:
    place = 0
    while place < len(expression.rstrip()):
        found = _TOKEN.match(expression, place)
        if found is None or (found["string"] and "\\(" in found["string"]):
            raise ValueError(SUPPORTED)
        place = found.end()
        yield found[0].strip()


def _walk(steps: Steps, value: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    if not steps:
        yield path, value
        return
    for way, inner in _next(steps[0], value):
        yield from _walk(steps[1:], inner, (*path, *way))


def _next(step: Field | Each | Select, value: Json) -> list[tuple[Path, Json]]:
    """Where a step leads, and what stands there."""
    if isinstance(step, Select):
        return [((), value)] if _holds(step, value) else []
    try:
        return [_at(value, step.key)] if isinstance(step, Field) else _inside(value)
    except UnfitError:
        if step.is_loose:
            return []
        raise


def _holds(step: Select, value: Json) -> bool:
    try:
        return step.holds(value)
    except NothingError:
        return False


def _at(value: Json, key: str | int) -> tuple[Path, Json]:
    """Nothing has every field, and nothing in it. Numbers below zero count from the end."""
    if value is None:
        return (key,), None
    if isinstance(value, dict) and isinstance(key, str):
        return (key,), value.get(key)
    if isinstance(value, list) and isinstance(key, int):
        place = key if key >= 0 else len(value) + key
        return (place,), value[place] if 0 <= place < len(value) else None
    raise UnfitError


def _inside(value: Json) -> list[tuple[Path, Json]]:
    if isinstance(value, dict):
        return [((name,), inner) for name, inner in value.items()]
    if isinstance(value, list):
        return [((place,), inner) for place, inner in enumerate(value)]
    raise UnfitError


class _Reader:
    """Tokens on their way to steps, from the loosest sign to the closest."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def is_done(self) -> bool:
        return self._next == len(self._tokens)

    def pipeline(self) -> Steps:
        steps = self._term()
        while self._takes("|"):
            steps = (*steps, *self._term())
        return steps

    def _term(self) -> Steps:
        if self._takes("select"):
            self._needs("(")
            holds = self._condition()
            self._needs(")")
            return (Select(holds),)
        return self._chain()

    def _chain(self) -> Steps:
        """A dot, and fields and items of fields behind it."""
        self._needs(".")
        steps: list[Field | Each | Select] = []
        if self._is_name():
            steps.append(self._field(self._name()))
        while self._peek() in {".", "["}:
            if self._takes(".") and self._peek() != "[":
                steps.append(self._field(self._name()))
            else:
                steps.append(self._bracket())
        return tuple(steps)

    def _bracket(self) -> Field | Each:
        self._needs("[")
        if self._takes("]"):
            return Each(self._takes("?"))
        key = self._literal()
        self._needs("]")
        if isinstance(key, str | int) and not isinstance(key, bool):
            return self._field(key)
        raise ValueError(SUPPORTED)

    def _field(self, key: str | int) -> Field:
        return Field(key, self._takes("?"))

    def _is_name(self) -> bool:
        token = self._peek()
        return token.startswith('"') or token.isidentifier()

    def _name(self) -> str:
        if not self._is_name():
            raise ValueError(SUPPORTED)
        token = self._take()
        return str(_decoded(token)) if token.startswith('"') else token

    def _condition(self) -> Condition:
        holds = self._all_of()
        while self._takes("or"):
            holds = _either(holds, self._all_of())
        return holds

    def _all_of(self) -> Condition:
        holds = self._claim()
        while self._takes("and"):
            holds = _both(holds, self._claim())
        return holds

    def _claim(self) -> Condition:
        if self._takes("("):
            holds = self._condition()
            self._needs(")")
            return holds
        left = self._value()
        sign = self._peek()
        if sign in {"==", "!="}:
            self._take()
            return _compared(left, self._value(), is_equal=sign == "==")
        if self._takes("|"):
            return self._ending(left)
        return _true(left)

    def _ending(self, left: Value) -> Condition:
        test = _ENDS.get(self._take())
        if test is None:
            raise ValueError(SUPPORTED)
        self._needs("(")
        part = self._literal()
        self._needs(")")
        if isinstance(part, str):
            return _ended(left, test, part)
        raise ValueError(SUPPORTED)

    def _value(self) -> Value:
        if self._peek() == ".":
            return _single(self._chain())
        literal = self._literal()
        return lambda _body: literal

    def _literal(self) -> Json:
        token = self._take()
        if token in _LITERALS:
            return _LITERALS[token]
        if token[0] not in '"-0123456789':
            raise ValueError(SUPPORTED)
        return _decoded(token)

    def _peek(self) -> str:
        return "" if self.is_done else self._tokens[self._next]

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise ValueError(SUPPORTED)
        self._next += 1
        return token

    def _takes(self, sign: str) -> bool:
        is_next = self._peek() == sign
        self._next += is_next
        return is_next

    def _needs(self, sign: str) -> None:
        if not self._takes(sign):
            raise ValueError(SUPPORTED)


def _decoded(token: str) -> Json:
    try:
        literal: Json = msgspec.json.decode(token)
    except msgspec.DecodeError:
        raise ValueError(SUPPORTED) from None
    return literal


def _single(steps: Steps) -> Value:
    """What one path leads to; one that leads to many places is no value here."""
    if any(isinstance(step, Each) for step in steps):
        raise ValueError(SUPPORTED)

    def find(body: Json) -> Json:
        for _, value in _walk(steps, body, ()):
            return value
        raise NothingError

    return find


def _either(one: Condition, other: Condition) -> Condition:
    return lambda body: one(body) or other(body)


def _both(one: Condition, other: Condition) -> Condition:
    return lambda body: one(body) and other(body)


def _true(left: Value) -> Condition:
    """Everything is true but `null` and `false`; zero is, too."""

    def holds(body: Json) -> bool:
        value = left(body)
        return value is not None and value is not False

    return holds


def _compared(left: Value, right: Value, *, is_equal: bool) -> Condition:
    """The right side is looked at first: if it leads nowhere, nothing is wrong with the left."""

    def holds(body: Json) -> bool:
        other, one = right(body), left(body)
        return _is_same(one, other) is is_equal

    return holds


def _is_same(one: Json, other: Json) -> bool:
    """Whether two values are equal; true is not one, however deep it lies."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _ended(left: Value, test: Callable[[str, str], bool], part: str) -> Condition:
    def holds(body: Json) -> bool:
        value = left(body)
        if not isinstance(value, str):
            raise UnfitError
        return test(value, part)

    return holds
