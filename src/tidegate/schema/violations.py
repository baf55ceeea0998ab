"""Validation of an object by the schema of its kind, without a server.

A server first decodes an object: types and field names. Then it looks up the namespace, runs
mutating webhooks and validates the values. So decoding errors are certain, and a webhook may repair
invalid values.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import CRD
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.builtin import find_shape, object_meta_shape
from tidegate.schema.crd_validation import can_check_pattern, find_crd_problems
from tidegate.schema.defaulting import drop_nulls, fill_defaults, list_unknown_fields, prune
from tidegate.schema.shape import Shape
from tidegate.schema.structural import (
    INT_OR_STRING,
    Schema,
    get_version_schema,
    shapes_from_crd,
)
from tidegate.schema.types import find_decode_problem, find_typed_problems
from tidegate.schema.validation.definitions import find_definition_problems, list_schema_nodes
from tidegate.schema.validation.requirements import find_requirement_problems
from tidegate.world.messages import Cause

SERVER_CHECKED_KEYWORDS = ("x-kubernetes-validations", "allOf", "oneOf", "not", "multipleOf")
"""Keywords of a CRD schema that only a server checks."""
CHECKED_FORMATS = frozenset({"", "date-time", "double", "float", "int32", "int64", "password"})
MAX_CACHED_CRDS = 256
"""How many CRDs are cached; a plan with more of them reads some twice."""


class SchemaViolations(msgspec.Struct, frozen=True):
    """The violations of an object. Empty if it is valid."""

    unreadable: tuple[Cause, ...] = ()
    """Why the object cannot be decoded as its kind."""
    invalid: tuple[Cause, ...] = ()
    """Missing and invalid values."""
    is_incomplete: bool = False
    """Whether the CRD has rules that only a server checks."""

    @property
    def needs_server(self) -> bool:
        """Whether a dry run is needed: to confirm a violation, or for what was not checked."""
        return bool(self.unreadable or self.invalid or self.is_incomplete)


def find_schema_violations(
    kind: Kind, body: JsonObject, *, crd: bytes = b"", applied: bool = True
) -> SchemaViolations | None:
    """Return the violations of an object to be applied or, unless `applied`, created.

    `crd` is the encoded CRD of a custom kind. Returns None if the kind is unknown.
    """
    builtin_shape = find_shape(kind)
    if builtin_shape is not None:
        unreadable = _find_decode_problems(
            body, builtin_shape, body, builtin_shape, applied=applied
        )
        return SchemaViolations(
            unreadable, () if unreadable else _find_builtin_problems(kind, body)
        )
    served_kind = read_crd(crd).get(kind) if crd else None
    if served_kind is None:
        return None
    shape, is_incomplete = served_kind
    unreadable = _find_decode_problems(
        body, shape, body.get("metadata"), object_meta_shape(), applied=applied
    )
    invalid = (
        () if unreadable else find_custom_resource_problems(kind, body, shape, applied=applied)
    )
    return SchemaViolations(unreadable, invalid, is_incomplete)


@lru_cache(maxsize=MAX_CACHED_CRDS)
def read_crd(crd: bytes) -> Mapping[Kind, tuple[Shape, bool]]:
    """Return the shapes of the kinds that a CRD serves, and whether only a server checks some."""
    spec = get_mapping(msgspec.json.decode(crd), "spec")
    shapes = shapes_from_crd(spec)
    kinds: dict[Kind, tuple[Shape, bool]] = {}
    for version in get_mappings(spec, "versions"):
        name = get_text(version, "name")
        if version.get("served") is True and name in shapes:
            kind = Kind(get_text(spec, "group"), name, get_text(spec, "names", "kind"))
            schema = get_mapping(get_version_schema(version))
            kinds[kind] = shapes[name], _has_server_checked_rules(schema)
    return kinds


def _find_decode_problems(
    body: JsonObject, shape: Shape, typed_part: Json, typed_shape: Shape, *, applied: bool
) -> tuple[Cause, ...]:
    """Return what prevents decoding. Only the `typed_part` has a Go type."""
    if applied:
        causes = find_typed_problems(body, shape)
    else:
        unknown = sorted(list_unknown_fields(body, shape))
        causes = tuple(Cause(field, "unknown", "unknown field") for field in unknown)
    problem = "" if causes else find_decode_problem(typed_part, typed_shape)
    return (Cause("", "type", problem),) if problem else causes


def _find_builtin_problems(kind: Kind, body: JsonObject) -> tuple[Cause, ...]:
    causes = find_requirement_problems(kind, _without_status(body))
    return causes + find_definition_problems(body) if kind == CRD else causes


def find_custom_resource_problems(
    kind: Kind, body: JsonObject, shape: Shape, *, applied: bool
) -> tuple[Cause, ...]:
    """Return the problems of a custom resource that can be decoded, sorted.

    The status is ignored.
    """
    pruned = prune(_without_status(body), shape)
    complete = fill_defaults(pruned if applied else drop_nulls(pruned, shape), shape)
    return find_requirement_problems(kind, complete) + find_crd_problems(complete, shape)


def _without_status(body: JsonObject) -> JsonObject:
    """Return the object without its status, which is not written with the object."""
    return {name: part for name, part in body.items() if name != "status"}


def _has_server_checked_rules(schema: Schema) -> bool:
    return bool(get_mapping(schema, "properties", "metadata", "properties")) or any(
        _is_server_checked(node) for node, _ in list_schema_nodes(schema, "")
    )


def _is_server_checked(schema: Schema) -> bool:
    has_alternatives = "anyOf" in schema and schema.get(INT_OR_STRING) is not True
    return (
        has_alternatives
        or str(schema.get("format", "")) not in CHECKED_FORMATS
        or not can_check_pattern(str(schema.get("pattern", "")))
        or any(keyword in schema for keyword in SERVER_CHECKED_KEYWORDS)
    )
