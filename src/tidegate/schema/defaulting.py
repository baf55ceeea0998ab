"""What a body gains and loses before it is stored: unknown fields, nulls, and defaults of CRDs.

A custom object's unknown fields are told sorted; those of built-in kinds in the order in which they
stand, which is what `unknown_fields` gives. A creation or a replacement first drops nulls, then
fills in; what an apply comes to is filled in only. Built-in kinds have their defaults elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_

from tidegate.model.k8s.objects import Json
from tidegate.schema.shape import ANY, Merge, Shape, Type

UNSPECIFIED = Shape(type=Type.ANY, merge=Merge.FIELDS, is_nullable=True, is_lenient=True)
"""A place of which a schema says that there is something, and not what: its fields are dropped."""


def list_unknown_fields(body: Json, shape: Shape) -> tuple[str, ...]:
    """The unknown fields of an object: `spec.template.spec.containers[0].imag`."""
    return tuple(_unknown(body, shape, ""))


def prune(body: Json, shape: Shape) -> Json:
    """The object without its unknown fields; the very same one where there are none."""
    if shape is ANY:
        return body
    match body:
        case dict():
            return _pruned_object(body, shape)
        case list():
            items = _items(shape)
            return reuse_if_unchanged(body, [prune(item, items) for item in body])
        case _:
            return body


def reuse_if_unchanged(value: list[Json], kept: list[Json]) -> list[Json]:
    """What was made of a list: the very same list where none of its items is another."""
    return value if len(kept) == len(value) and all(map(is_, kept, value)) else kept


def _unknown(value: Json, shape: Shape, path: str) -> Iterator[str]:
    match value:
        case dict():
            for name, part in value.items():
                place = f"{path}.{name}" if path else name
                known = _known(shape, name)
                if known is None:
                    yield place
                elif isinstance(part, dict | list):
                    yield from _unknown(part, known, place)
        case list():
            items = _items(shape)
            for number, item in enumerate(value):
                yield from _unknown(item, items, f"{path}[{number}]")
        case _:
            pass


def _known(shape: Shape, name: str) -> Shape | None:
    asked = shape.fields.get(name) or shape.values
    if asked is not None:
        return asked()
    return ANY if shape.is_open else None


def _items(shape: Shape) -> Shape:
    if shape.items is not None:
        return shape.items()
    return ANY if shape.is_open else UNSPECIFIED


def _pruned_object(value: dict[str, Json], shape: Shape) -> Json:
    known = ((name, part, _known(shape, name)) for name, part in value.items())
    kept = {name: prune(part, place) for name, part, place in known if place is not None}
    is_same = len(kept) == len(value) and all(map(is_, kept.values(), value.values()))
    return value if is_same else kept


def fill_defaults(body: Json, shape: Shape) -> Json:
    """The object with its defaults; the very same one where none is missing."""
    return _walk(body, shape, _with_own_defaults, _filled)


def drop_nulls(body: Json, shape: Shape) -> Json:
    """The object without nulls where its CRD allows none and has no default to put there."""
    return _walk(body, shape, _without_nulls, drop_nulls)


def _walk(
    body: Json,
    shape: Shape,
    change_own: Callable[[dict[str, Json], Shape], dict[str, Json]],
    change_part: Callable[[Json, Shape], Json],
) -> Json:
    if shape.name:
        return body
    match body:
        case dict():
            return _along(change_own(body, shape), shape, change_part)
        case list() if shape.items is not None:
            items = shape.items()
            return reuse_if_unchanged(body, [change_part(item, items) for item in body])
        case _:
            return body


def _filled(value: Json, shape: Shape) -> Json:
    if value is None and not shape.is_nullable:
        value = shape.default
    return fill_defaults(value, shape)


def _with_own_defaults(value: dict[str, Json], shape: Shape) -> dict[str, Json]:
    missing = {name: default for name, default in shape.defaults.items() if name not in value}
    return {**value, **missing} if missing else value


def _without_nulls(value: dict[str, Json], shape: Shape) -> dict[str, Json]:
    nulls = [name for name, part in value.items() if part is None and _is_barred(shape, name)]
    return {name: value[name] for name in value if name not in nulls} if nulls else value


def _is_barred(shape: Shape, name: str) -> bool:
    asked = shape.fields.get(name) or shape.values
    found = asked() if asked is not None else None
    return found is not None and not found.is_nullable and found.default is None


def _along(
    value: dict[str, Json], shape: Shape, change: Callable[[Json, Shape], Json]
) -> dict[str, Json]:
    """The object with its known parts changed; the very same one where none does."""
    changed: dict[str, Json] = {}
    for name, part in value.items():
        asked = shape.fields.get(name) or shape.values
        if asked is not None and (part is None or isinstance(part, dict | list)):
            new = change(part, asked())
            if new is not part:
                changed[name] = new
    return {**value, **changed} if changed else value
