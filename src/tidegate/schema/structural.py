"""Shapes of custom kinds, from the schemas in their CRD.

What every object has is added: `apiVersion`, `kind`, and a `metadata` that is the same for all
kinds. `definitions` says whether a schema is one that a server takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from tidegate.model.k8s.json_fields import get_list, get_mapping
from tidegate.model.k8s.objects import Json
from tidegate.schema.builtin import object_meta_shape
from tidegate.schema.defaulting import UNSPECIFIED
from tidegate.schema.shape import Merge, Rules, Shape, Type

Schema = dict[str, Json]
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
_TEXT = Shape(type=Type.STRING, merge=Merge.ATOMIC)
_LISTS = {"map": Merge.KEYED, "set": Merge.SET}
_RULES = {
    "maxItems": "max_items",
    "maxLength": "max_length",
    "maxProperties": "max_properties",
    "minItems": "min_items",
    "minLength": "min_length",
    "minProperties": "min_properties",
}
_HEAD: Mapping[str, Callable[[], Shape]] = {
    "apiVersion": lambda: _TEXT,
    "kind": lambda: _TEXT,
    "metadata": object_meta_shape,
}


def shapes_from_crd(spec: Json) -> dict[str, Shape]:
    """The shape of every version of a CRD, by its name; `spec` is the CRD's."""
    return {
        str(version.get("name")): shape_from_schema(get_mapping(get_version_schema(version)))
        for version in map(get_mapping, get_list(spec, "versions"))
    }


def shape_from_schema(schema: Schema) -> Shape:
    """The shape of a kind with this schema."""
    return _shape({**schema, "type": "object"}, is_lenient=False, head=_HEAD)


def get_version_schema(version: Schema) -> Json:
    """Where a version of a CRD has its schema."""
    return get_mapping(version, "schema").get("openAPIV3Schema")


def _shape(
    schema: Schema, *, is_lenient: bool, head: Mapping[str, Callable[[], Shape]] | None = None
) -> Shape:
    if schema.get(INT_OR_STRING) is True:
        return _scalar(schema, Type.INT_OR_STRING)
    match schema.get("type"):
        case "array":
            return _list(schema, is_lenient=is_lenient)
        case "string" | "integer" | "number" | "boolean" as name:
            return _scalar(schema, Type(name))
        case "object":
            return _object(schema, Type.OBJECT, is_lenient=is_lenient, head=head or {})
        case _:
            return _object(schema, Type.ANY, is_lenient=is_lenient, head={})


def _later(schema: Json, *, is_lenient: bool) -> Callable[[], Shape]:
    return cache(partial(_shape, get_mapping(schema), is_lenient=is_lenient))


def _scalar(schema: Schema, type_: Type) -> Shape:
    return Shape(
        type=type_,
        merge=Merge.ATOMIC,
        default=schema.get("default"),
        format=str(schema.get("format", "")),
        is_nullable=schema.get("nullable") is True,
        is_lenient=type_ is Type.INT_OR_STRING,
        rules=_rules(schema),
    )


def _list(schema: Schema, *, is_lenient: bool) -> Shape:
    merge = _LISTS.get(str(schema.get(LIST_TYPE)), Merge.ATOMIC)
    items = get_mapping(schema, "items")
    keys = tuple(str(key) for key in get_list(schema, LIST_KEYS))
    defaults = _defaults(get_mapping(items, "properties"))
    return Shape(
        type=Type.ARRAY,
        merge=merge,
        items=_later(items, is_lenient=is_lenient or schema.get(PRESERVE) is True),
        keys=keys if merge is Merge.KEYED else (),
        key_defaults={key: defaults[key] for key in keys if key in defaults},
        default=schema.get("default"),
        is_nullable=schema.get("nullable") is True,
        rules=_rules(schema),
    )


def _object(
    schema: Schema, type_: Type, *, is_lenient: bool, head: Mapping[str, Callable[[], Shape]]
) -> Shape:
    properties = get_mapping(schema, "properties")
    rest = schema.get("additionalProperties")
    is_open = schema.get(PRESERVE) is True
    is_embedded = schema.get(EMBEDDED) is True
    # What stands below an open place may be applied whatever it is called, and is dropped later.
    below = is_lenient or is_open
    fields = {name: _later(part, is_lenient=below) for name, part in properties.items()}
    return Shape(
        type=type_,
        merge=Merge.ATOMIC if schema.get(MAP_TYPE) == "atomic" else Merge.FIELDS,
        fields={**fields, **(_HEAD if is_embedded else head)},
        values=_values(rest, is_lenient=below),
        required=_required(schema, is_embedded=is_embedded),
        default=schema.get("default"),
        defaults=_defaults(properties),
        is_nullable=schema.get("nullable") is True,
        is_open=is_open,
        is_lenient=rest is None and (below or not properties) and not head,
        rules=_rules(schema),
    )


def _values(rest: Json, *, is_lenient: bool) -> Callable[[], Shape] | None:
    match rest:
        case dict():
            return _later(rest, is_lenient=is_lenient)
        case True:
            return lambda: UNSPECIFIED
        case _:
            return None


def _required(schema: Schema, *, is_embedded: bool) -> frozenset[str]:
    names = {str(name) for name in get_list(schema, "required")}
    return frozenset(names | ({"apiVersion", "kind"} if is_embedded else set()))


def _defaults(properties: Schema) -> Schema:
    told = ((name, get_mapping(part).get("default")) for name, part in properties.items())
    return {name: default for name, default in told if default is not None}


def _rules(schema: Schema) -> Rules | None:
    counts = {ours: _whole(schema.get(theirs)) for theirs, ours in _RULES.items()}
    rules = Rules(
        enum=tuple(get_list(schema, "enum")),
        pattern=str(schema.get("pattern", "")),
        minimum=_number(schema.get("minimum")),
        maximum=_number(schema.get("maximum")),
        is_above_minimum=schema.get("exclusiveMinimum") is True,
        is_below_maximum=schema.get("exclusiveMaximum") is True,
        is_spelled_out=schema.get(INT_OR_STRING) is True and "anyOf" in schema,
        **counts,
    )
    return None if rules == _NO_RULES else rules


_NO_RULES = Rules()


def _whole(part: Json) -> int | None:
    return part if isinstance(part, int) else None


def _number(part: Json) -> float | None:
    return float(part) if isinstance(part, int | float) else None
