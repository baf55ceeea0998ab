"""Values in place of variables that are unknown, valid for the type of their field."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.model.k8s.objects import FieldPath, Json, JsonObject, Kind
from tidegate.schema.builtin import find_shape
from tidegate.schema.custom_resources import find_field_shape, list_versions
from tidegate.schema.shape import ANY, Shape, Type, find_child_shape

Fill = Callable[[str], str | None]
"""Returns a text with example values in place of its variables; None if it has no variable."""
_EXAMPLES: dict[Type, Json] = {Type.INTEGER: 1, Type.NUMBER: 1, Type.BOOLEAN: False}
_FORMAT_EXAMPLES = {"quantity": "1", "int-or-string": "1"}


def fill_variables(kind: Kind, body: JsonObject, fill: Fill) -> tuple[Json, tuple[FieldPath, ...]]:
    """Return an object with example values in place of variables, and the paths of these fields."""
    paths: list[FieldPath] = []
    return _fill(body, _kind_shape(kind), (), fill, paths), tuple(paths)


def _kind_shape(kind: Kind) -> Shape:
    """Return the shape of a kind; one for anything if the kind is unknown."""
    if (shape := find_shape(kind)) is not None:
        return shape
    is_known = kind.version in list_versions().get((kind.group, kind.name), ())
    return (find_field_shape(kind) if is_known else None) or ANY


def _fill(value: Json, shape: Shape, path: FieldPath, fill: Fill, paths: list[FieldPath]) -> Json:
    if isinstance(value, str):
        filled = fill(value)
        if filled is None:
            return value
        paths.append(path)
        return _EXAMPLES.get(shape.type, _FORMAT_EXAMPLES.get(shape.format, filled))
    if isinstance(value, list):
        item = shape.items() if shape.items else ANY
        return [_fill(each, item, (*path, index), fill, paths) for index, each in enumerate(value)]
    if isinstance(value, dict):
        return {
            fill(key) or key: _fill(
                inner, find_child_shape(shape, key) or ANY, (*path, fill(key) or key), fill, paths
            )
            for key, inner in value.items()
        }
    return value
