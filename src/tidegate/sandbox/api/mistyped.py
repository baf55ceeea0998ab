"""What of an intent does not fit its shape, before anything is merged.

Only what merging needs: known names, the right sort of value, items that can be told apart. What a
server checks afterwards, in the merged object, is not looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidegate.model.objects import Json
from tidegate.sandbox.api.elements import FIELD, item_element, shown
from tidegate.sandbox.api.plan import UNKNOWN, Plan, plan_of
from tidegate.sandbox.api.shape import Merge, Shape, Type

UNDECLARED = "field not declared in schema"


class Mistyped(NamedTuple):
    """A place as the server shows it, `.spec.replicas`, and what is wrong there."""

    field: str
    problem: str


def find_mistyped(intent: Json, shape: Shape) -> tuple[Mistyped, ...]:
    """Everything that cannot be merged; empty where the intent can be."""
    return tuple(_find(intent, plan_of(shape)))


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_scalar(value: Json) -> bool:
    return not isinstance(value, dict | list)


_EXPECTED: dict[Type, tuple[str, Callable[[Json], bool]]] = {
    Type.OBJECT: ("map", lambda value: isinstance(value, dict)),
    Type.ARRAY: ("list", lambda value: isinstance(value, list)),
    Type.STRING: ("string", lambda value: isinstance(value, str)),
    Type.INTEGER: ("numeric (int or float)", _is_number),
    Type.NUMBER: ("numeric (int or float)", _is_number),
    Type.BOOLEAN: ("boolean", lambda value: isinstance(value, bool)),
    Type.INT_OR_STRING: ("any scalar", _is_scalar),
}


def _find(value: Json, plan: Plan) -> Iterator[Mistyped]:
    if value is None or plan.shape.type is Type.ANY:
        return
    expected, fits = _EXPECTED[plan.shape.type]
    if not fits(value):
        yield Mistyped("", f"expected {expected}, got {type(value).__name__}")
    elif isinstance(value, dict):
        yield from _find_in_fields(value, plan)
    elif isinstance(value, list):
        yield from _find_in_items(value, plan)


def _find_in_fields(value: dict[str, Json], plan: Plan) -> Iterator[Mistyped]:
    for name, inner in value.items():
        place = plan.children[name]
        if place is UNKNOWN:
            yield Mistyped(f".{name}", UNDECLARED)
            return
        for field, problem in _find(inner, place):
            yield Mistyped(shown(FIELD + name) + field, problem)


def _find_in_items(value: list[Json], plan: Plan) -> Iterator[Mistyped]:
    inner = plan.items
    seen: set[str] = set()
    for place, item in enumerate(value):
        element = item_element(item, plan) if plan.is_list else ""
        if element is None:
            yield Mistyped("", f"element {place}: {_untold(item, plan.shape)}")
            return
        if element and element in seen:
            yield Mistyped("", f"duplicate entries for key {shown(element)}")
        seen.add(element)
        for field, problem in _find(item, inner):
            yield Mistyped((shown(element) if element else f"[{place}]") + field, problem)


def _untold(item: Json, shape: Shape) -> str:
    if shape.merge is Merge.SET:
        kind = "explicit null" if item is None else "map type"
        return f"associative list without keys has an element that's a {kind}"
    if not isinstance(item, dict):
        kind = "a null element" if item is None else "non-map elements"
        return f"associative list with keys may not have {kind}"
    keys = " ".join(f'"{key}"' for key in shape.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}]"
        " (and doesn't have default values for any key fields)"
    )
