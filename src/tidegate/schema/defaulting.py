"""Pruning of unknown fields, removal of nulls and defaulting by CRDs before an object is stored.

Unknown fields of a custom resource are reported sorted, those of a built-in kind in their order in
the object, which is the order of `list_unknown_fields`. A creation or replacement drops nulls
before defaulting; the result of an apply is only defaulted. Built-in kinds are defaulted elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_

from tidegate.model.k8s.objects import Json
from tidegate.schema.shape import ANY, Merge, Shape, Type

UNSPECIFIED = Shape(type=Type.ANY, merge=Merge.FIELDS, is_nullable=True, is_lenient=True)
"""A value that a schema allows without saying what it is: its fields are dropped."""


def list_unknown_fields(body: Json, shape: Shape) -> tuple[str, ...]:
    """Return the unknown fields of an object: `spec.template.spec.containers[0].imag`."""
    return tuple(_iterate_unknown_fields(body, shape, ""))


def prune(body: Json, shape: Shape) -> Json:
    """Return the object without its unknown fields, or the same object if there are none.

    Like `PruneWithOptions` in `pkg/apiserver/schema/pruning/algorithm.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    if shape is ANY:
        return body
    match body:
        case dict():
            return _prune_object(body, shape)
        case list():
            items = _item_shape(shape)
            return reuse_if_unchanged(body, [prune(item, items) for item in body])
        case _:
            return body


def reuse_if_unchanged(value: list[Json], new_items: list[Json]) -> list[Json]:
    """Return the original list if each item is the same object, else the new list."""
    return value if len(new_items) == len(value) and all(map(is_, new_items, value)) else new_items


def _iterate_unknown_fields(value: Json, shape: Shape, path: str) -> Iterator[str]:
    match value:
        case dict():
            for name, part in value.items():
                field = f"{path}.{name}" if path else name
                known_shape = _known_shape(shape, name)
                if known_shape is None:
                    yield field
                elif isinstance(part, dict | list):
                    yield from _iterate_unknown_fields(part, known_shape, field)
        case list():
            items = _item_shape(shape)
            for index, item in enumerate(value):
                yield from _iterate_unknown_fields(item, items, f"{path}[{index}]")
        case _:
            pass


def _known_shape(shape: Shape, name: str) -> Shape | None:
    factory = shape.fields.get(name) or shape.values
    if factory is not None:
        return factory()
    return ANY if shape.is_open else None


def _item_shape(shape: Shape) -> Shape:
    if shape.items is not None:
        return shape.items()
    return ANY if shape.is_open else UNSPECIFIED


def _prune_object(value: dict[str, Json], shape: Shape) -> Json:
    parts = ((name, part, _known_shape(shape, name)) for name, part in value.items())
    kept = {
        name: prune(part, part_shape) for name, part, part_shape in parts if part_shape is not None
    }
    is_same = len(kept) == len(value) and all(map(is_, kept.values(), value.values()))
    return value if is_same else kept


def fill_defaults(body: Json, shape: Shape) -> Json:
    """Return the object with its defaults, or the same object if none is missing.

    Like `Default` in `pkg/apiserver/schema/defaulting/algorithm.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    return _walk(body, shape, _with_missing_defaults, _fill_part)


def drop_nulls(body: Json, shape: Shape) -> Json:
    """Return the object without nulls, except where its CRD allows null or has a default.

    Like `PruneNonNullableNullsWithoutDefaults` in `pkg/apiserver/schema/defaulting/prunenulls.go`
    of k8s.io/apiextensions-apiserver 0.36.4.
    """
    return _walk(body, shape, _without_nulls, drop_nulls)


def _walk(
    body: Json,
    shape: Shape,
    change_object: Callable[[dict[str, Json], Shape], dict[str, Json]],
    change_part: Callable[[Json, Shape], Json],
) -> Json:
    if shape.name:
        return body
    match body:
        case dict():
            return _change_parts(change_object(body, shape), shape, change_part)
        case list() if shape.items is not None:
            items = shape.items()
            return reuse_if_unchanged(body, [change_part(item, items) for item in body])
        case _:
            return body


def _fill_part(value: Json, shape: Shape) -> Json:
    if value is None and not shape.is_nullable:
        value = shape.default
    return fill_defaults(value, shape)


def _with_missing_defaults(value: dict[str, Json], shape: Shape) -> dict[str, Json]:
    missing = {name: default for name, default in shape.defaults.items() if name not in value}
    return {**value, **missing} if missing else value


def _without_nulls(value: dict[str, Json], shape: Shape) -> dict[str, Json]:
    nulls = [name for name, part in value.items() if part is None and _must_drop_null(shape, name)]
    return {name: value[name] for name in value if name not in nulls} if nulls else value


def _must_drop_null(shape: Shape, name: str) -> bool:
    factory = shape.fields.get(name) or shape.values
    field_shape = factory() if factory is not None else None
    return field_shape is not None and not field_shape.is_nullable and field_shape.default is None


def _change_parts(
    value: dict[str, Json], shape: Shape, change: Callable[[Json, Shape], Json]
) -> dict[str, Json]:
    """Return the object with its known parts changed, or the same object if none changes."""
    changed: dict[str, Json] = {}
    for name, part in value.items():
        factory = shape.fields.get(name) or shape.values
        if factory is not None and (part is None or isinstance(part, dict | list)):
            changed_part = change(part, factory())
            if changed_part is not part:
                changed[name] = changed_part
    return {**value, **changed} if changed else value
