"""What a schema says of a value, as far as merging and checking need it.

One node per place in an object. Built-in kinds have theirs from a data file (`builtin`), custom
ones from their CRD (`structural`); merging (`merge`), ownership (`ownership`) and checking
(`checks`) read nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import Json


class Merge(StrEnum):
    """How two values of a place come together when they are applied."""

    ATOMIC = "atomic"
    """Scalars, and whatever is replaced as a whole: owned as one field."""
    FIELDS = "fields"
    """Objects with named fields, or maps: owned field by field."""
    KEYED = "keyed"
    """Lists whose items are told apart by `keys`."""
    SET = "set"
    """Lists of distinct scalars."""


class Type(StrEnum):
    ANY = "any"
    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a CRD asks of a value beyond its type. None: it does not ask."""

    enum: tuple[Json, ...] = ()
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    is_above_minimum: bool = False
    is_below_maximum: bool = False
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    is_spelled_out: bool = False
    """Integer or string, said a second time with `anyOf`, as generators of CRDs do."""


class Shape(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One place. Shapes may contain themselves, so children are asked for, not held."""

    type: Type
    merge: Merge
    fields: Mapping[str, Callable[[], Shape]] = msgspec.field(default_factory=dict)
    """Named fields of an object."""
    values: Callable[[], Shape] | None = None
    """What every value of a map is."""
    items: Callable[[], Shape] | None = None
    """What every item of a list is."""
    keys: tuple[str, ...] = ()
    """By which fields items of a keyed list are told apart."""
    key_defaults: Mapping[str, Json] = msgspec.field(default_factory=dict)
    """What a key is where an item does not say (a port's protocol is TCP)."""
    required: frozenset[str] = frozenset()
    always: frozenset[str] = frozenset()
    """Fields of a built-in kind that are there even where nothing is said of them: Go structs."""
    default: Json = None
    """What stands here where an object does not say. None: nothing."""
    defaults: Mapping[str, Json] = msgspec.field(default_factory=dict)
    """The defaults of the fields, by name."""
    format: str = ""
    """How a scalar is written: `int32`, `int64`, `byte`, `date-time`, `quantity` and others."""
    is_nullable: bool = False
    is_open: bool = False
    """Unknown fields are kept (`x-kubernetes-preserve-unknown-fields`)."""
    is_lenient: bool = False
    """Unknown fields can be applied, though they are refused or dropped later."""
    rules: Rules | None = None
    name: str = ""
    """The definition of a built-in object: `core.v1.Container`."""


ANY = Shape(type=Type.ANY, merge=Merge.ATOMIC, is_open=True)
"""A place of which nothing is known: kept as it is, owned as one field."""
DEDUCED = Shape(type=Type.ANY, merge=Merge.FIELDS, is_open=True)
"""A place that is what its value is: maps are owned field by field, all else as one field."""


def find_child_shape(shape: Shape, name: str) -> Shape | None:
    """What a field of an object or a value of a map is; None where the name is not known."""
    found = shape.fields.get(name)
    if found is not None:
        return found()
    if shape.values is not None:
        return shape.values()
    return DEDUCED if shape.is_open or shape.is_lenient else None
