"""Validation of CRDs.

Common mistakes: no schema, no type, no items, a list type without keys, a default that does not
match, no storage version. Not checked: CEL rules (`x-kubernetes-validations`), conversion, printer
columns, the nesting of `allOf` and similar keywords.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.k8s.json_fields import get_list, get_mapping
from tidegate.model.k8s.objects import Json
from tidegate.schema.causes import duplicate, forbidden, invalid, required, unsupported
from tidegate.schema.crd_validation import find_crd_problems
from tidegate.schema.defaulting import prune
from tidegate.schema.shape import Shape
from tidegate.schema.structural import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    Schema,
    get_version_schema,
    shape_from_schema,
)
from tidegate.world.messages import Cause

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_KEYED = "if parent array's x-kubernetes-list-type is map"
_PRESERVED = (
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
    "spec.versions[*].schema instead"
)
_METADATA = (
    "must not specify anything other than name and generateName, but metadata is implicitly "
    "specified"
)
_KEY_MISSING = (
    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
    "property"
)


def find_definition_problems(body: Json) -> tuple[Cause, ...]:
    """Return all problems of a CRD, sorted.

    Like `ValidateCustomResourceDefinition` in `pkg/apis/apiextensions/validation/validation.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    spec = get_mapping(body, "spec")
    causes = [*_name_problems(get_mapping(body), spec), *_version_problems(spec)]
    schemas = [get_version_schema(get_mapping(version)) for version in get_list(spec, "versions")]
    is_same_schema = all(schema == schemas[0] for schema in schemas)
    for index, schema in enumerate(schemas):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        if not isinstance(schema, dict):
            causes.append(required(path))
        elif not is_same_schema:
            causes += _schema_problems(schema, path)
        elif index == 0:
            causes += _schema_problems(schema, "spec.validation.openAPIV3Schema")
    return tuple(sorted(set(causes)))


def _name_problems(body: Schema, spec: Schema) -> Iterator[Cause]:
    names, group = get_mapping(spec, "names"), spec.get("group")
    name = get_mapping(body, "metadata").get("name")
    if name != f"{names.get('plural', '')}.{group or ''}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    # Without a kind, the names that are derived from it are missing, too.
    derived = () if names.get("kind") else ("kind", "singular", "listKind")
    for part in ("plural", *derived):
        if not names.get(part):
            yield required(f"spec.names.{part}")
    if spec.get("preserveUnknownFields") is True:
        yield invalid("spec.preserveUnknownFields", value=True, detail=_PRESERVED)
    scope = spec.get("scope")
    if not scope:
        yield required("spec.scope")
    elif scope not in {"Cluster", "Namespaced"}:
        yield unsupported("spec.scope", scope, ("Cluster", "Namespaced"))


def _version_problems(spec: Schema) -> Iterator[Cause]:
    versions = [get_mapping(version) for version in get_list(spec, "versions")]
    names: list[Json] = [version.get("name") for version in versions]
    stored = [str(version.get("name")) for version in versions if version.get("storage") is True]
    if len(stored) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", names, detail)
    if not stored:
        detail = "must have at least one stored version"
        yield invalid("status.storedVersions", None, detail)
    elif len(stored) > 1:
        detail = f"must have the storage version {stored[-1]}"
        yield invalid("status.storedVersions", [stored[0]], detail)
    if len(set(map(str, names))) < len(names):
        yield invalid("spec.versions", names, "must contain unique version names")


def _schema_problems(schema: Schema, path: str) -> list[Cause]:
    """Check in three rounds, each only if the one before found nothing, as the server does.

    Like `ValidateStructural` in `pkg/apiserver/schema/validation.go`,
    `validateStructuralCompleteness` in `pkg/apiserver/schema/complete.go` and `ValidateDefaults` in
    `pkg/apiserver/schema/defaulting/validation.go` of k8s.io/apiextensions-apiserver 0.36.4.
    """
    return (
        [
            cause
            for node, node_path in list_schema_nodes(schema, path)
            for cause in _form_problems(node, node_path)
        ]
        or [*_root_problems(schema, path)]
        + [
            cause
            for node, node_path in list_schema_nodes(schema, path)
            for cause in _structure_problems(node, node_path)
        ]
        or [
            cause
            for node, node_path in list_schema_nodes(schema, path)
            for cause in _default_problems(node, node_path)
        ]
    )


def list_schema_nodes(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """Yield a schema and all schemas below it with their paths."""
    yield schema, path
    for name, part in get_mapping(schema, "properties").items():
        yield from list_schema_nodes(get_mapping(part), f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(part := schema.get(name), dict):
            yield from list_schema_nodes(part, f"{path}.{name}")


def _form_problems(schema: Schema, path: str) -> Iterator[Cause]:
    type_ = schema.get("type")
    if type_ and type_ not in TYPES:
        yield unsupported(f"{path}.type", type_, TYPES)
    if "$ref" in schema:
        yield forbidden(f"{path}.$ref", "$ref is not supported")
    if schema.get("uniqueItems") is True:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    if schema.get("properties") and schema.get("additionalProperties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", detail)
    if schema.get(MAP_TYPE) not in {None, "atomic", "granular"}:
        yield unsupported(f"{path}.{MAP_TYPE}", schema[MAP_TYPE], ("atomic", "granular"))
    yield from _list_problems(schema, path)


def _list_problems(schema: Schema, path: str) -> Iterator[Cause]:
    kind, keys = schema.get(LIST_TYPE), get_list(schema, LIST_KEYS)
    items = get_mapping(schema, "items")
    if kind is None:
        if keys:
            detail = "must be map if x-kubernetes-list-map-keys is non-empty"
            yield required(f"{path}.{LIST_TYPE}", detail)
        return
    if kind not in {"atomic", "set", "map"}:
        yield unsupported(f"{path}.{LIST_TYPE}", kind, ("atomic", "set", "map"))
    elif schema.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        yield invalid(f"{path}.type", schema.get("type", ""), detail)
    elif kind == "set" and items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield invalid(f"{path}.items.{MAP_TYPE}", items.get(MAP_TYPE), detail)
    elif kind == "map":
        yield from _key_problems(items, keys, path)


def _key_problems(items: Schema, keys: list[Json], path: str) -> Iterator[Cause]:
    properties = get_mapping(items, "properties")
    required_names = get_list(items, "required")
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{path}.{LIST_KEYS}", detail)
    if items.get("type") != "object":
        yield invalid(f"{path}.items.type", items.get("type", ""), f"must be object {_KEYED}")
        return
    seen: list[Json] = []
    for index, key in enumerate(keys):
        field = f"{path}.items.properties[{key}]"
        property_ = get_mapping(properties.get(str(key)))
        if key in seen:
            yield duplicate(f"{path}.{LIST_KEYS}[{index}]", key)
        seen.append(key)
        if not property_:
            detail = "entries must all be names of item properties"
            yield invalid(f"{path}.{LIST_KEYS}", keys, detail)
        elif property_.get("type") in {"array", "object"}:
            yield invalid(f"{field}.type", property_["type"], f"must be a scalar type {_KEYED}")
        elif property_.get("default") is None and key not in required_names:
            yield required(f"{field}.default", _KEY_MISSING)


def _root_problems(schema: Schema, path: str) -> Iterator[Cause]:
    if schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if not schema.get("type"):
        if schema.get(PRESERVE) is not True:
            yield required(f"{path}.type", "must not be empty at the root")
    elif schema["type"] != "object":
        yield invalid(f"{path}.type", schema["type"], "must be object at the root")
    metadata = get_mapping(schema, "properties", "metadata")
    if get_mapping(metadata, "properties").keys() - {"name", "generateName"}:
        yield forbidden(f"{path}.properties[metadata]", _METADATA)


def _structure_problems(schema: Schema, path: str) -> Iterator[Cause]:
    type_ = schema.get("type")
    if type_ == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    if schema.get(EMBEDDED) is True:
        if type_ != "object":
            detail = "must be object if x-kubernetes-embedded-resource is true"
            yield required(f"{path}.type", detail)
        if schema.get(PRESERVE) is not True and not schema.get("properties"):
            detail = (
                "must not be empty if x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields"
            )
            yield required(f"{path}.properties", detail)
    elif not (type_ or schema.get(INT_OR_STRING) or schema.get(PRESERVE)):
        if path.endswith(".items"):
            yield required(f"{path}.type", "must not be empty for specified array items")
        elif not path.endswith("openAPIV3Schema"):
            yield required(f"{path}.type", "must not be empty for specified object fields")


def _default_problems(schema: Schema, path: str) -> Iterator[Cause]:
    default = schema.get("default")
    if default is None:
        return
    shape = _part_shape(schema)
    for cause in find_crd_problems(default, shape):
        field = f"{path}.default.{cause.field}".removesuffix(".")
        yield msgspec.structs.replace(cause, field=field)
    if prune(default, shape) is not default:
        yield invalid(f"{path}.default", default, "must not have unknown fields")


def _part_shape(schema: Schema) -> Shape:
    """Return the shape of a part of a schema, as a field of an auxiliary kind."""
    return shape_from_schema({"properties": {"part": schema}}).fields["part"]()
