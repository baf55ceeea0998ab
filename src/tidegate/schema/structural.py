"""Shapes of custom kinds, from the schemas in their CRD.

`apiVersion`, `kind` and `metadata` are added to every schema. `validation.definitions` checks
whether a server accepts a schema.

Like `NewStructural` in `pkg/apiserver/schema/convert.go` of k8s.io/apiextensions-apiserver 0.36.4.
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
_LIST_MERGES = {"map": Merge.KEYED, "set": Merge.SET}
_RULE_FIELDS = {
    "maxItems": "max_items",
    "maxLength": "max_length",
    "maxProperties": "max_properties",
    "minItems": "min_items",
    "minLength": "min_length",
    "minProperties": "min_properties",
}
_COMMON_FIELDS: Mapping[str, Callable[[], Shape]] = {
    "apiVersion": lambda: _TEXT,
    "kind": lambda: _TEXT,
    "metadata": object_meta_shape,
}


def shapes_from_crd(spec: Json) -> dict[str, Shape]:
    """Return the shape of every version of a CRD by version name. `spec` is that of the CRD."""
    return {
        str(version.get("name")): shape_from_schema(get_mapping(get_version_schema(version)))
        for version in map(get_mapping, get_list(spec, "versions"))
    }


def shape_from_schema(schema: Schema) -> Shape:
    """Return the shape of a kind with this schema."""
    return _shape({**schema, "type": "object"}, is_lenient=False, common_fields=_COMMON_FIELDS)


def get_version_schema(version: Schema) -> Json:
    """Return the schema of a version of a CRD."""
    return get_mapping(version, "schema").get("openAPIV3Schema")


def _shape(
    schema: Schema,
    *,
    is_lenient: bool,
    common_fields: Mapping[str, Callable[[], Shape]] | None = None,
) -> Shape:
    if schema.get(INT_OR_STRING) is True:
        return _scalar(schema, Type.INT_OR_STRING)
    match schema.get("type"):
        case "array":
            return _list(schema, is_lenient=is_lenient)
        case "string" | "integer" | "number" | "boolean" as name:
            return _scalar(schema, Type(name))
        case "object":
            return _object(
                schema, Type.OBJECT, is_lenient=is_lenient, common_fields=common_fields or {}
            )
        case _:
            return _object(schema, Type.ANY, is_lenient=is_lenient, common_fields={})


def _shape_factory(schema: Json, *, is_lenient: bool) -> Callable[[], Shape]:
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
    merge = _LIST_MERGES.get(str(schema.get(LIST_TYPE)), Merge.ATOMIC)
    items = get_mapping(schema, "items")
    keys = tuple(str(key) for key in get_list(schema, LIST_KEYS))
    defaults = _defaults(get_mapping(items, "properties"))
    return Shape(
        type=Type.ARRAY,
        merge=merge,
        items=_shape_factory(items, is_lenient=is_lenient or schema.get(PRESERVE) is True),
        keys=keys if merge is Merge.KEYED else (),
        key_defaults={key: defaults[key] for key in keys if key in defaults},
        default=schema.get("default"),
        is_nullable=schema.get("nullable") is True,
        rules=_rules(schema),
    )


def _object(
    schema: Schema,
    type_: Type,
    *,
    is_lenient: bool,
    common_fields: Mapping[str, Callable[[], Shape]],
) -> Shape:
    properties = get_mapping(schema, "properties")
    additional = schema.get("additionalProperties")
    is_open = schema.get(PRESERVE) is True
    is_embedded = schema.get(EMBEDDED) is True
    # Unknown fields below an open field may be applied, and are dropped later.
    is_lenient_below = is_lenient or is_open
    fields = {
        name: _shape_factory(part, is_lenient=is_lenient_below) for name, part in properties.items()
    }
    return Shape(
        type=type_,
        merge=Merge.ATOMIC if schema.get(MAP_TYPE) == "atomic" else Merge.FIELDS,
        fields={**fields, **(_COMMON_FIELDS if is_embedded else common_fields)},
        values=_values(additional, is_lenient=is_lenient_below),
        required=_required(schema, is_embedded=is_embedded),
        default=schema.get("default"),
        defaults=_defaults(properties),
        is_nullable=schema.get("nullable") is True,
        is_open=is_open,
        is_lenient=additional is None
        and (is_lenient_below or not properties)
        and not common_fields,
        rules=_rules(schema),
    )


def _values(additional: Json, *, is_lenient: bool) -> Callable[[], Shape] | None:
    match additional:
        case dict():
            return _shape_factory(additional, is_lenient=is_lenient)
        case True:
            return lambda: UNSPECIFIED
        case _:
            return None


def _required(schema: Schema, *, is_embedded: bool) -> frozenset[str]:
    names = {str(name) for name in get_list(schema, "required")}
    return frozenset(names | ({"apiVersion", "kind"} if is_embedded else set()))


def _defaults(properties: Schema) -> Schema:
    defaults = ((name, get_mapping(part).get("default")) for name, part in properties.items())
    return {name: default for name, default in defaults if default is not None}


def _rules(schema: Schema) -> Rules | None:
    counts = {rule: _to_int(schema.get(keyword)) for keyword, rule in _RULE_FIELDS.items()}
    rules = Rules(
        enum=tuple(get_list(schema, "enum")),
        pattern=str(schema.get("pattern", "")),
        minimum=_to_float(schema.get("minimum")),
        maximum=_to_float(schema.get("maximum")),
        is_above_minimum=schema.get("exclusiveMinimum") is True,
        is_below_maximum=schema.get("exclusiveMaximum") is True,
        is_spelled_out=schema.get(INT_OR_STRING) is True and "anyOf" in schema,
        **counts,
    )
    return None if rules == _NO_RULES else rules


_NO_RULES = Rules()


def _to_int(part: Json) -> int | None:
    return part if isinstance(part, int) else None


def _to_float(part: Json) -> float | None:
    return float(part) if isinstance(part, int | float) else None
