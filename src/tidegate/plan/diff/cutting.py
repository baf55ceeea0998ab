"""Cutting fields out of an object, by their paths: out of its body, and out of what is owned of it.

All paths are gathered first, so that numbers still say what they said before the first cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from tidegate.model.ignoring import Path
from tidegate.model.objects import Json
from tidegate.plan.diff.owned import SELF, Fields, is_scalar, key_values, read_key, read_value

Step = TypeVar("Step", str, int)


class Cuts(msgspec.Struct):
    """What goes below a place; all of it where `whole`."""

    whole: bool = False
    below: dict[str | int, Cuts] = msgspec.field(default_factory=dict)

    @classmethod
    def at(cls, paths: Iterable[Path]) -> Cuts:
        root = cls()
        for path in paths:
            cuts = root
            for step in path:
                cuts = cuts.below.setdefault(step, cls())
            cuts.whole = True
        return root


def cut(value: Json, cuts: Cuts, *, tidy: bool = False) -> Json:
    """A value without what is cut. `tidy`: what is left empty goes as well."""
    if isinstance(value, dict):
        return dict(_left(value.items(), cuts, tidy=tidy))
    if isinstance(value, list):
        return [inner for _, inner in _left(enumerate(value), cuts, tidy=tidy)]
    return value


def _left(
    parts: Iterable[tuple[Step, Json]], cuts: Cuts, *, tidy: bool
) -> Iterator[tuple[Step, Json]]:
    for step, inner in parts:
        below = cuts.below.get(step)
        if below is None:
            yield step, inner
        elif not below.whole:
            left = cut(inner, below, tidy=tidy)
            if left or not inner or not tidy:
                yield step, left


def cut_owned(fields: Fields, value: Json, cuts: Cuts) -> Fields:
    """What is owned of a value without what is cut, and without what nothing is left of."""
    left: Fields = {}
    for element, inner in fields.items():
        step = step_to(element, value)
        below = None if step is None else cuts.below.get(step)
        if below is None:
            left[element] = inner
        elif not below.whole:
            rest = cut_owned(inner, _inside(value, step), below)
            if not inner or not rest.keys() <= {SELF}:
                left[element] = rest
    return left


def owned_paths(fields: Fields, value: Json, path: Path = ()) -> Iterator[Path]:
    """Where in a value these fields stand."""
    for element, inner in fields.items():
        step = step_to(element, value)
        if step is None:
            continue
        if inner.keys() - {SELF}:
            yield from owned_paths(inner, _inside(value, step), (*path, step))
        elif not inner:
            yield (*path, step)


def step_to(element: str, value: Json) -> str | int | None:
    """The field or the number of the item that an element of managed fields means."""
    if isinstance(value, dict):
        name = element[2:]
        return name if element.startswith("f:") and name in value else None
    if not isinstance(value, list) or element == SELF:
        return None
    match element[0]:
        case "k":
            names, values = read_key(element)
            return _first(
                isinstance(item, dict) and key_values(item, names) == values for item in value
            )
        case "v":
            said = read_value(element)
            return _first(is_scalar(item) and item == said for item in value)
        case _:
            return int(element[2:])


def _first(fits: Iterable[bool]) -> int | None:
    """The number of the first that fits."""
    return next((number for number, fit in enumerate(fits) if fit), None)


def _inside(value: Json, step: str | int | None) -> Json:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None
