"""The built-in kinds of Kubernetes and their shapes.

Read on first use from a file that `make schemas` writes (`plane.schemas` describes its format). A
shape is built when it is first needed.

Where only the names of fields are known, `find_merge_strategy` finds how lists and mappings merge,
by the name of a field and of its parent. A name that merges differently in two kinds is unknown.
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
"""A function that returns a shape. Shapes can be recursive."""
EXCLUDED_KINDS = frozenset({"CustomResourceDefinition", "ResourceSlice"})
"""CRDs hold schemas with arbitrary field names, and drivers write ResourceSlices."""


class _Definition(msgspec.Struct, frozen=True):
    """A definition of the file."""

    fields: dict[str, object]
    """The fields by name."""
    required: frozenset[str] = frozenset()
    """Names of required fields."""
    always: frozenset[str] = frozenset()
    """Names of fields that are always present."""
    atomic: bool = False
    """Whether values are replaced as a whole."""


class _SchemaFile(msgspec.Struct, frozen=True):
    """The content of the file."""

    release: str
    """The Kubernetes release."""
    kinds: tuple[tuple[str, str, str, str, bool, str, str, str], ...]
    """The kinds; `plane.schemas` describes the format."""
    definitions: dict[str, _Definition]
    """The definitions by name."""


def _scalar(type_: Type, format_: str = "") -> Shape:
    return Shape(type=type_, merge=Merge.ATOMIC, format=format_)


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
    """Return every built-in kind in the order of the server: the preferred version of a group
    first.
    """
    return tuple(
        ServedKind(
            kind=Kind(group, version, name),
            plural=plural,
            namespaced=namespaced,
            verbs=tuple(verbs.split()),
            subresources=tuple(subresources.split()),
        )
        for group, version, name, plural, namespaced, verbs, subresources, _ in _read_file().kinds
    )


@cache
def find_shape(kind: Kind) -> Shape | None:
    """Return the shape of a built-in kind, or None for other kinds."""
    root = _roots().get(kind)
    return None if root is None else _definition(root)


def kubernetes_release() -> str:
    """Return the Kubernetes release of the schemas: `v1.36.4`."""
    return _read_file().release


def object_meta_shape() -> Shape:
    """Return the shape of `metadata`, which is the same for all kinds."""
    return _definition("meta.v1.ObjectMeta")


@cache
def _read_file() -> _SchemaFile:
    return msgspec.json.decode(FILE.read_bytes(), type=_SchemaFile)


@cache
def _roots() -> Mapping[Kind, str]:
    return {Kind(*row[:3]): row[-1] for row in _read_file().kinds}


@cache
def _definition(name: str, *, is_granular: bool = False) -> Shape:
    definition = _read_file().definitions[name]
    return Shape(
        name=name,
        type=Type.OBJECT,
        merge=Merge.ATOMIC if definition.atomic and not is_granular else Merge.FIELDS,
        fields={field: _shape_factory(schema) for field, schema in definition.fields.items()},
        required=definition.required,
        always=definition.always,
        is_lenient=not definition.fields,
    )


def _shape_factory(schema: object) -> ShapeFactory:
    match schema:
        case str() if schema.startswith("@"):
            return partial(_definition, schema[1:])
        case str():
            return partial(_SCALARS.__getitem__, schema)
        case ["granular", str(name)]:
            return partial(_definition, name[1:], is_granular=True)
        case _:
            return cache(partial(_collection, schema))


def _collection(schema: object) -> Shape:
    match schema:
        case ["map" | "atomic" as relation, values]:
            merge = Merge.FIELDS if relation == "map" else Merge.ATOMIC
            return Shape(type=Type.OBJECT, merge=merge, values=_shape_factory(values))
        case ["set", items]:
            return Shape(type=Type.ARRAY, merge=Merge.SET, items=_shape_factory(items))
        case ["keyed", items, dict(keys)]:
            return Shape(
                type=Type.ARRAY,
                merge=Merge.KEYED,
                items=_shape_factory(items),
                keys=tuple(keys),
                key_defaults={key: value for key, value in keys.items() if value is not None},
            )
        case ["list", items]:
            return Shape(type=Type.ARRAY, merge=Merge.ATOMIC, items=_shape_factory(items))
        case _:
            raise TypeError(schema)


class MergeStrategy(NamedTuple):
    """How a list or a mapping merges."""

    keys: tuple[str, ...] = ()
    """The fields that identify an item of a list."""
    is_set: bool = False
    """Whether the list is a set."""
    is_atomic: bool = False
    """Whether it is replaced as a whole."""


UNKNOWN_STRATEGY = MergeStrategy()


def find_merge_strategy(parent: str, name: str) -> MergeStrategy:
    """Return how the field `name` of the field `parent` merges."""
    return _merge_strategies().get((parent, name), UNKNOWN_STRATEGY)


@cache
def _merge_strategies() -> dict[tuple[str, str], MergeStrategy]:
    strategies: dict[tuple[str, str], MergeStrategy] = {}
    seen: set[tuple[str, str]] = set()
    for served in served_kinds():
        shape = find_shape(served.kind)
        if (
            shape is not None
            and "create" in served.verbs
            and served.kind.name not in EXCLUDED_KINDS
        ):
            _collect_strategies("", shape, strategies, seen)
    return strategies


def _collect_strategies(
    parent: str,
    shape: Shape,
    strategies: dict[tuple[str, str], MergeStrategy],
    seen: set[tuple[str, str]],
) -> None:
    """Collect the strategies of all fields below a field that is not atomic."""
    if (parent, shape.name) in seen:
        return
    seen.add((parent, shape.name))
    for name, factory in shape.fields.items():
        if name == "status":
            continue
        inner = factory()
        if inner.type in {Type.ARRAY, Type.OBJECT}:
            strategy = _merge_strategy(inner)
            is_same = strategies.setdefault((parent, name), strategy) == strategy
            strategies[parent, name] = strategy if is_same else UNKNOWN_STRATEGY
        if inner.merge is not Merge.ATOMIC:
            _collect_strategies(
                name, inner if inner.items is None else inner.items(), strategies, seen
            )


def _merge_strategy(shape: Shape) -> MergeStrategy:
    if shape.type is Type.ARRAY:
        return MergeStrategy(shape.keys, is_set=shape.merge is Merge.SET)
    return MergeStrategy(is_atomic=shape.merge is Merge.ATOMIC)
