"""Paths that lead to many places of an object, each told with its own path.

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
    """A path in parts: between two of them are the items of a list; `deep` is a key's pattern."""

    parts: tuple[tuple[PathStep, ...], ...]
    deep: str = ""


FieldValue: TypeAlias = tuple[FieldPath, Json]


@cache
def parse_field_pattern(text: str) -> FieldPattern:
    """Raises ValueError for what is no path."""
    head, sign, pattern = text.partition(ANY_DEPTH)
    if sign and (not pattern or "." in pattern):
        raise ValueError(f"`{text}` is no path: behind `**` comes the pattern of one key")
    pieces = head.split("[*]")
    parts = [parse_path(one.removeprefix(".")) if one.strip(".") else () for one in pieces]
    if not parts[0]:
        raise ValueError(f"`{text}` is no path")
    return FieldPattern(tuple(parts), pattern)


def find_fields(body: Json, text: str) -> Iterator[FieldValue]:
    """What stands at the places that a path leads to, in the order of the object."""
    places = parse_field_pattern(text)
    found = _walk(body, places.parts, ())
    if not places.deep:
        return found
    return (one for path, value in found for one in _deeper(value, places.deep, path))


def _walk(
    body: Json, parts: tuple[tuple[PathStep, ...], ...], path: FieldPath
) -> Iterator[FieldValue]:
    first, *rest = parts
    for there, value in _step(body, first, path):
        if not rest:
            yield there, value
        elif isinstance(value, list):
            for place, item in enumerate(value):
                yield from _walk(item, tuple(rest), (*there, place))


def _step(body: Json, steps: Iterable[PathStep], path: FieldPath) -> Iterator[FieldValue]:
    """What stands at the end of some steps; a star goes through all keys."""
    steps = tuple(steps)
    for at, step in enumerate(steps):
        if step == ANY_KEY:
            for key, value in body.items() if isinstance(body, dict) else ():
                yield from _step(value, steps[at + 1 :], (*path, key))
            return
        place = _chosen(body, *step) if isinstance(step, tuple) else step
        found = _at(body, place)
        if found is None:
            return
        body, path = found, (*path, place)
    if body is not None:
        yield path, body


def _at(body: Json, place: str | int) -> Json:
    if isinstance(place, str):
        return body.get(place) if isinstance(body, dict) else None
    return body[place] if isinstance(body, list) and 0 <= place < len(body) else None


def _chosen(body: Json, key: str, value: str) -> int:
    """The place of the first item whose key has this value; -1 where there is none."""
    items = body if isinstance(body, list) else []
    fits = (
        at for at, one in enumerate(items) if isinstance(one, dict) and str(one.get(key)) == value
    )
    return next(fits, -1)


def _deeper(value: Json, pattern: str, path: FieldPath) -> Iterator[FieldValue]:
    if isinstance(value, dict):
        for key, one in value.items():
            if fnmatchcase(key, pattern):
                yield (*path, key), one
            yield from _deeper(one, pattern, (*path, key))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from _deeper(one, pattern, (*path, at))


def list_texts(value: Json, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Every text in an object, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from list_texts(one, (*path, key))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from list_texts(one, (*path, at))
