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
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.builtin import find_shape, object_meta_shape
from tidegate.schema.crd_validation import find_crd_problems
from tidegate.schema.defaulting import drop_nulls, fill_defaults, list_unknown_fields, prune
from tidegate.schema.shape import Shape
from tidegate.schema.structural import shapes_from_crd
from tidegate.schema.types import find_decode_problem, find_typed_problems
from tidegate.schema.validation.definitions import find_definition_problems
from tidegate.schema.validation.requirements import find_requirement_problems
from tidegate.world.messages import Cause

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
MAX_CACHED_CRDS = 256
"""How many CRDs are cached; a plan with more of them reads some twice."""


class SchemaViolations(msgspec.Struct, frozen=True):
    """The violations of an object. Empty if it is valid."""

    unreadable: tuple[Cause, ...] = ()
    """Why the object cannot be decoded as its kind."""
    invalid: tuple[Cause, ...] = ()
    """Missing and invalid values."""


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
    shape = read_crd(crd).get(kind) if crd else None
    if shape is None:
        return None
    unreadable = _find_decode_problems(
        body, shape, body.get("metadata"), object_meta_shape(), applied=applied
    )
    invalid = (
        () if unreadable else find_custom_resource_problems(kind, body, shape, applied=applied)
    )
    return SchemaViolations(unreadable, invalid)


@lru_cache(maxsize=MAX_CACHED_CRDS)
def read_crd(crd: bytes) -> Mapping[Kind, Shape]:
    """Return the shapes of the kinds that a CRD serves."""
    spec = get_mapping(msgspec.json.decode(crd), "spec")
    shapes = shapes_from_crd(spec)
    kinds: dict[Kind, Shape] = {}
    for version in get_mappings(spec, "versions"):
        name = get_text(version, "name")
        if version.get("served") is True and name in shapes:
            kind = Kind(get_text(spec, "group"), name, get_text(spec, "names", "kind"))
            kinds[kind] = shapes[name]
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
