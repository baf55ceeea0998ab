"""Fields that a schema does not know: told by name, and dropped.

A custom object's unknown fields are told sorted; those of built-in kinds in the order in which
they stand, which is what `unknown_fields` gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.objects import Json
from tidegate.schema.shape import ANY, Merge, Shape, Type

NOTHING = Shape(type=Type.ANY, merge=Merge.FIELDS, is_nullable=True, is_lenient=True)
"""A place of which a schema says that there is something, and not what: its fields are dropped."""


def unknown_fields(body: Json, shape: Shape) -> tuple[str, ...]:
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
            return _pruned_list(body, shape)
        case _:
            return body


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
    return ANY if shape.is_open else NOTHING


def _pruned_object(value: dict[str, Json], shape: Shape) -> Json:
    kept: dict[str, Json] | None = None
    for name, part in value.items():
        known = _known(shape, name)
        pruned = None if known is None else prune(part, known)
        if pruned is part and known is not None:
            continue
        kept = dict(value) if kept is None else kept
        if known is None:
            del kept[name]
        else:
            kept[name] = pruned
    return value if kept is None else kept


def _pruned_list(value: list[Json], shape: Shape) -> Json:
    items = _items(shape)
    kept = [prune(item, items) for item in value]
    is_same = all(new is old for new, old in zip(kept, value, strict=True))
    return value if is_same else kept
