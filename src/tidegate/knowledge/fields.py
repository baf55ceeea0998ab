"""Field patterns, which match many fields of an object.

spec.rules[*].http.paths[*].backend     every item of a list
spec.valuesFrom[*]                      the items themselves
spec.template.*.image                   every key of a mapping
spec.**.*[Ss]ecretRef                   any depth, the last key as a pattern
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple, TypeAlias

from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.k8s.paths import PathStep, parse_path

ANY_DEPTH = ".**."
ANY_KEY = "*"


class FieldPattern(NamedTuple):
    """A parsed pattern."""

    parts: tuple[tuple[PathStep, ...], ...]
    """Paths between the `[*]` of the pattern."""
    deep: str = ""
    """The pattern of the key after `**`, or empty."""


FieldValue: TypeAlias = tuple[FieldPath, Json]
"""The path of a field and its value."""


@cache
def parse_field_pattern(text: str) -> FieldPattern:
    """Parse a pattern. Raises ValueError if it is invalid."""
    start, separator, pattern = text.partition(ANY_DEPTH)
    if separator and (not pattern or "." in pattern):
        raise ValueError(f"`{text}` is not a path: `**` must be followed by the pattern of one key")
    pieces = start.split("[*]")
    parts = [parse_path(piece.removeprefix(".")) if piece.strip(".") else () for piece in pieces]
    if not parts[0]:
        raise ValueError(f"`{text}` is not a path")
    return FieldPattern(tuple(parts), pattern)


def find_fields(body: Json, pattern: str) -> Iterator[FieldValue]:
    """Return the fields that match a pattern, in the order of the object."""
    field_pattern = parse_field_pattern(pattern)
    values = _walk(body, field_pattern.parts, ())
    if not field_pattern.deep:
        return values
    return (
        field for path, value in values for field in _find_deep(value, field_pattern.deep, path)
    )


def _walk(
    body: Json, parts: tuple[tuple[PathStep, ...], ...], path: FieldPath
) -> Iterator[FieldValue]:
    first, *rest = parts
    for item_path, value in _follow_steps(body, first, path):
        if not rest:
            yield item_path, value
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from _walk(item, tuple(rest), (*item_path, index))


def _follow_steps(body: Json, steps: Iterable[PathStep], path: FieldPath) -> Iterator[FieldValue]:
    """Yield the fields at the end of some steps. `*` matches all keys."""
    steps = tuple(steps)
    for position, step in enumerate(steps):
        if step == ANY_KEY:
            for name, inner in body.items() if isinstance(body, dict) else ():
                yield from _follow_steps(inner, steps[position + 1 :], (*path, name))
            return
        key = _find_item_index(body, *step) if isinstance(step, tuple) else step
        value = _get_item(body, key)
        if value is None:
            return
        body, path = value, (*path, key)
    if body is not None:
        yield path, body


def _get_item(body: Json, key: str | int) -> Json:
    if isinstance(key, str):
        return body.get(key) if isinstance(body, dict) else None
    return body[key] if isinstance(body, list) and 0 <= key < len(body) else None


def _find_item_index(body: Json, key: str, value: str) -> int:
    """Return the index of the first item whose key has this value, or -1."""
    items = body if isinstance(body, list) else []
    matches = (
        index
        for index, item in enumerate(items)
        if isinstance(item, dict) and str(item.get(key)) == value
    )
    return next(matches, -1)


def _find_deep(value: Json, pattern: str, path: FieldPath) -> Iterator[FieldValue]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if fnmatchcase(key, pattern):
                yield (*path, key), inner
            yield from _find_deep(inner, pattern, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_deep(item, pattern, (*path, index))


def list_texts(value: Json, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Yield every text in a value with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from list_texts(inner, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from list_texts(item, (*path, index))
