"""Places in an object: how they are reached, named and shown."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.model.change import show_name
from tidegate.model.objects import Json
from tidegate.plan.diff.owned import Key, Scalar
from tidegate.plan.diff.values import show_scalar

Step: TypeAlias = "str | int | Key | Value"
Place: TypeAlias = "tuple[()] | tuple[Place, Step]"
"""The place above, and the last step: a field, a number in a list, a key, a value of a set."""
ROOT: Place = ()


class Value(NamedTuple):
    """A value of a set."""

    value: Scalar


class Parting(NamedTuple):
    """A value that an apply would change; None where there is none."""

    place: Place
    before: Json
    after: Json


def name_of(place: Place) -> str:
    """The name of the field that a place is, or is in."""
    while place:
        place, last = place
        if isinstance(last, str):
            return last
    return ""


def names_of(place: Place) -> tuple[str, ...]:
    """The fields on the way to a place."""
    return tuple(step for step in _steps(place) if isinstance(step, str))


def show_place(place: Place) -> str:
    """A place as people write it: `spec.template.spec.containers[name=app].image`."""
    return "".join(map(_show_step, _steps(place))).removeprefix(".")


def element_of(step: Step) -> str:
    """A step as managed fields write it."""
    match step:
        case Key(names, values):
            return "k:" + msgspec.json.encode(dict(zip(names, values, strict=True))).decode()
        case Value(value):
            return "v:" + msgspec.json.encode(value).decode()
        case int():
            return f"i:{step}"
        case str():
            return "f:" + step


def _steps(place: Place) -> list[Step]:
    steps: list[Step] = []
    while place:
        place, last = place
        steps.append(last)
    return steps[::-1]


def _show_step(step: Step) -> str:
    match step:
        case Key(names, values):
            pairs = zip(names, values, strict=True)
            return "[" + ",".join(f"{name}={show_scalar(value)}" for name, value in pairs) + "]"
        case Value(value):
            return f"[={show_scalar(value)}]"
        case int():
            return f"[{step}]"
        case str():
            return show_name(step)
