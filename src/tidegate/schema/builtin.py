"""The kinds that Kubernetes brings, and their shapes.

Read on first use from a file that `make schemas` writes (its language is told in `plane.schemas`);
a shape is made when it is asked for, and once.

Where only the names of fields are known, `merging_of` tells how lists and mappings merge, by a
field's name and the name of the field it is in. What is merged one way in one kind and another way
in another is not known here: its owners tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.objects import Kind, ServedKind
from tidegate.schema.shape import ANY, DEDUCED, Merge, Shape, Type

FILE = Path(__file__).with_name("kubernetes-1.36.json")
ShapeFactory = Callable[[], Shape]
EXCLUDED_KINDS = frozenset({"CustomResourceDefinition", "ResourceSlice"})
"""Definitions hold schemas, whose names are anybody's, and slices are written by drivers."""


class _Definition(msgspec.Struct, frozen=True):
    fields: dict[str, object]
    required: frozenset[str] = frozenset()
    always: frozenset[str] = frozenset()
    atomic: bool = False


class _SchemaBook(msgspec.Struct, frozen=True):
    release: str
    kinds: tuple[tuple[str, str, str, str, bool, str, str, str], ...]
    definitions: dict[str, _Definition]


def _scalar(type_: Type, written: str = "") -> Shape:
    return Shape(type=type_, merge=Merge.ATOMIC, format=written)


_SCALARS = {
    "any": DEDUCED,
    "boolean": _scalar(Type.BOOLEAN),
    "byte": _scalar(Type.STRING, "byte"),
    "int-or-string": Shape(type=Type.INT_OR_STRING, merge=Merge.ATOMIC, is_lenient=True),
    "int32": _scalar(Type.INTEGER, "int32"),
    "int64": _scalar(Type.INTEGER, "int64"),
    "number": _scalar(Type.NUMBER, "double"),
    "quantity": _scalar(Type.INT_OR_STRING, "quantity"),
    "raw": ANY,
    "string": _scalar(Type.STRING),
    "time": _scalar(Type.STRING, "date-time"),
}


@cache
def served_kinds() -> tuple[ServedKind, ...]:
    """Every kind, in the server's own order: the preferred version of a group first."""
    return tuple(
        ServedKind(
            kind=Kind(group, version, name),
            plural=plural,
            namespaced=namespaced,
            verbs=tuple(verbs.split()),
            subresources=tuple(subresources.split()),
        )
        for group, version, name, plural, namespaced, verbs, subresources, _ in _read().kinds
    )


@cache
def find_shape(kind: Kind) -> Shape | None:
    """What an object of this kind is; None for kinds that Kubernetes does not bring."""
    root = _roots().get(kind)
    return None if root is None else _definition(root)


def kubernetes_release() -> str:
    """The Kubernetes that all of this was read from: `v1.36.4`."""
    return _read().release


def object_meta_shape() -> Shape:
    """`metadata`, which is the same for all kinds."""
    return _definition("meta.v1.ObjectMeta")


@cache
def _read() -> _SchemaBook:
    return msgspec.json.decode(FILE.read_bytes(), type=_SchemaBook)


@cache
def _roots() -> Mapping[Kind, str]:
    return {Kind(*row[:3]): row[-1] for row in _read().kinds}


@cache
def _definition(name: str, *, is_granular: bool = False) -> Shape:
    found = _read().definitions[name]
    return Shape(
        name=name,
        type=Type.OBJECT,
        merge=Merge.ATOMIC if found.atomic and not is_granular else Merge.FIELDS,
        fields={field: _place(place) for field, place in found.fields.items()},
        required=found.required,
        always=found.always,
        is_lenient=not found.fields,
    )


def _place(place: object) -> ShapeFactory:
    match place:
        case str() if place.startswith("@"):
            return partial(_definition, place[1:])
        case str():
            return partial(_SCALARS.__getitem__, place)
        case ["granular", str(name)]:
            return partial(_definition, name[1:], is_granular=True)
        case _:
            return cache(partial(_collection, place))


def _collection(place: object) -> Shape:
    match place:
        case ["map" | "atomic" as relation, values]:
            merge = Merge.FIELDS if relation == "map" else Merge.ATOMIC
            return Shape(type=Type.OBJECT, merge=merge, values=_place(values))
        case ["set", items]:
            return Shape(type=Type.ARRAY, merge=Merge.SET, items=_place(items))
        case ["keyed", items, dict(keys)]:
            return Shape(
                type=Type.ARRAY,
                merge=Merge.KEYED,
                items=_place(items),
                keys=tuple(keys),
                key_defaults={key: value for key, value in keys.items() if value is not None},
            )
        case ["list", items]:
            return Shape(type=Type.ARRAY, merge=Merge.ATOMIC, items=_place(items))
        case _:
            raise TypeError(place)


class MergeStrategy(NamedTuple):
    """By which fields the items of a list are told apart; whether it is a set; or in one piece."""

    keys: tuple[str, ...] = ()
    is_set: bool = False
    is_atomic: bool = False


UNKNOWN_STRATEGY = MergeStrategy()


def find_merge_strategy(parent: str, name: str) -> MergeStrategy:
    """How the field `name` of what stands in `parent` merges."""
    return _places().get((parent, name), UNKNOWN_STRATEGY)


@cache
def _places() -> dict[tuple[str, str], MergeStrategy]:
    found: dict[tuple[str, str], MergeStrategy] = {}
    seen: set[tuple[str, str]] = set()
    for served in served_kinds():
        shape = find_shape(served.kind)
        if (
            shape is not None
            and "create" in served.verbs
            and served.kind.name not in EXCLUDED_KINDS
        ):
            _note_fields("", shape, found, seen)
    return found


def _note_fields(
    parent: str,
    shape: Shape,
    found: dict[tuple[str, str], MergeStrategy],
    seen: set[tuple[str, str]],
) -> None:
    """Note what is below a place that is not in one piece itself."""
    if (parent, shape.name) in seen:
        return
    seen.add((parent, shape.name))
    for name, asked in shape.fields.items():
        if name == "status":
            continue
        inner = asked()
        if inner.type in {Type.ARRAY, Type.OBJECT}:
            own = _merging(inner)
            is_same = found.setdefault((parent, name), own) == own
            found[parent, name] = own if is_same else UNKNOWN_STRATEGY
        if inner.merge is not Merge.ATOMIC:
            _note_fields(name, inner if inner.items is None else inner.items(), found, seen)


def _merging(shape: Shape) -> MergeStrategy:
    if shape.type is Type.ARRAY:
        return MergeStrategy(shape.keys, is_set=shape.merge is Merge.SET)
    return MergeStrategy(is_atomic=shape.merge is Merge.ATOMIC)
