"""The schema of a value, as far as merging and validation need it.

One node per field. Built-in kinds have their shapes in a data file (`builtin`), custom kinds in
their CRD (`structural`). Merging, ownership and validation use nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import Json


class Merge(StrEnum):
    """How two values of a field are merged by an apply."""

    ATOMIC = "atomic"
    """Scalars, and whatever is replaced as a whole: owned as one field."""
    FIELDS = "fields"
    """Objects with named fields, or maps: owned field by field."""
    KEYED = "keyed"
    """Lists whose items are identified by `keys`."""
    SET = "set"
    """Lists of distinct scalars."""


class Type(StrEnum):
    """The type of a value."""

    ANY = "any"
    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Validation rules of a CRD beyond the type. None means no rule."""

    enum: tuple[Json, ...] = ()
    """Allowed values; empty for all."""
    pattern: str = ""
    """Regular expression in the syntax of Go; empty for none."""
    minimum: float | None = None
    """Smallest number."""
    maximum: float | None = None
    """Largest number."""
    is_above_minimum: bool = False
    """Whether the minimum itself is not allowed."""
    is_below_maximum: bool = False
    """Whether the maximum itself is not allowed."""
    min_length: int | None = None
    """Minimum length of a string."""
    max_length: int | None = None
    """Maximum length of a string."""
    min_items: int | None = None
    """Minimum number of list items."""
    max_items: int | None = None
    """Maximum number of list items."""
    min_properties: int | None = None
    """Minimum number of fields."""
    max_properties: int | None = None
    """Maximum number of fields."""
    is_spelled_out: bool = False
    """Whether integer-or-string is repeated as `anyOf`, as CRD generators do."""


class Shape(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The schema of a field. Shapes can be recursive, so children are functions."""

    type: Type
    """The type of the value."""
    merge: Merge
    """How two values are merged."""
    fields: Mapping[str, Callable[[], Shape]] = msgspec.field(default_factory=dict)
    """Named fields of an object."""
    values: Callable[[], Shape] | None = None
    """The shape of the values of a map."""
    items: Callable[[], Shape] | None = None
    """The shape of the items of a list."""
    keys: tuple[str, ...] = ()
    """The fields that identify an item of a keyed list."""
    key_defaults: Mapping[str, Json] = msgspec.field(default_factory=dict)
    """Defaults of key fields: the protocol of a port is TCP."""
    required: frozenset[str] = frozenset()
    """Names of required fields."""
    always: frozenset[str] = frozenset()
    """Fields of a built-in kind that are always present, because they are Go structs."""
    default: Json = None
    """The default of the field, or None."""
    defaults: Mapping[str, Json] = msgspec.field(default_factory=dict)
    """The defaults of the inner fields, by name."""
    format: str = ""
    """The format of a scalar: `int32`, `int64`, `byte`, `date-time`, `quantity` and others."""
    is_nullable: bool = False
    """Whether null is allowed."""
    is_open: bool = False
    """Whether unknown fields are kept (`x-kubernetes-preserve-unknown-fields`)."""
    is_lenient: bool = False
    """Whether unknown fields can be applied, though they are rejected or dropped later."""
    rules: Rules | None = None
    """Validation rules of a CRD; None for none."""
    name: str = ""
    """The name of a built-in definition: `core.v1.Container`."""


ANY = Shape(type=Type.ANY, merge=Merge.ATOMIC, is_open=True)
"""An unknown value: kept as it is, owned as one field."""
DEDUCED = Shape(type=Type.ANY, merge=Merge.FIELDS, is_open=True)
"""A value whose shape follows its content: maps are owned by field, the rest as one field."""


def find_child_shape(shape: Shape, name: str) -> Shape | None:
    """Return the shape of a field of an object or of a value of a map, or None if it is unknown."""
    factory = shape.fields.get(name)
    if factory is not None:
        return factory()
    if shape.values is not None:
        return shape.values()
    return DEDUCED if shape.is_open or shape.is_lenient else None
