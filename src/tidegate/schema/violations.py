"""Whether a server would take a body, as far as the schema of its kind tells without asking.

A server first reads a body as its kind: types, and names of fields. Only then it looks for the
namespace, lets webhooks change the object, and asks for what must be there. So the first half holds
whatever else is in the cluster; what the second finds may be mended on the way.
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
    """What is wrong with a body; nothing, where all is empty.

    `unreadable`: it is not of its kind. `invalid`: it lacks something, or holds a value that may
    not stand there. `partial`: its kind asks for more than was checked.
    """

    unreadable: tuple[Cause, ...] = ()
    invalid: tuple[Cause, ...] = ()


def find_schema_violations(
    kind: Kind, body: JsonObject, *, definition: bytes = b"", applied: bool = True
) -> SchemaViolations | None:
    """What is wrong with a body that is to be applied, or else created; None: nothing is known.

    `definition` is the CRD of a kind that Kubernetes does not bring.
    """
    own = find_shape(kind)
    if own is not None:
        unreadable = _unreadable(body, own, body, own, applied=applied)
        return SchemaViolations(unreadable, () if unreadable else _unmet(kind, body))
    shape = read_crd(definition).get(kind) if definition else None
    if shape is None:
        return None
    unreadable = _unreadable(
        body, shape, body.get("metadata"), object_meta_shape(), applied=applied
    )
    invalid = (
        () if unreadable else find_custom_resource_problems(kind, body, shape, applied=applied)
    )
    return SchemaViolations(unreadable, invalid)


@lru_cache(maxsize=MAX_CACHED_CRDS)
def read_crd(definition: bytes) -> Mapping[Kind, Shape]:
    """The kinds of a CRD: their shapes, and whether a schema says more than is checked."""
    spec = get_mapping(msgspec.json.decode(definition), "spec")
    shapes = shapes_from_crd(spec)
    kinds: dict[Kind, Shape] = {}
    for version in get_mappings(spec, "versions"):
        name = get_text(version, "name")
        if version.get("served") is True and name in shapes:
            kind = Kind(get_text(spec, "group"), name, get_text(spec, "names", "kind"))
            kinds[kind] = shapes[name]
    return kinds


def _unreadable(
    body: JsonObject, shape: Shape, typed: Json, type_: Shape, *, applied: bool
) -> tuple[Cause, ...]:
    """What keeps a body from being read; only its `typed` part is made a type of."""
    if applied:
        causes = find_typed_problems(body, shape)
    else:
        unknown = sorted(list_unknown_fields(body, shape))
        causes = tuple(Cause(field, "unknown", "unknown field") for field in unknown)
    problem = "" if causes else find_decode_problem(typed, type_)
    return (Cause("", "type", problem),) if problem else causes


def _unmet(kind: Kind, body: JsonObject) -> tuple[Cause, ...]:
    causes = find_requirement_problems(kind, _without_status(body))
    return causes + find_definition_problems(body) if kind == CRD else causes


def find_custom_resource_problems(
    kind: Kind, body: JsonObject, shape: Shape, *, applied: bool
) -> tuple[Cause, ...]:
    """What a server asks of a custom object that it can read, sorted; a status is left out."""
    known = prune(_without_status(body), shape)
    whole = fill_defaults(known if applied else drop_nulls(known, shape), shape)
    return find_requirement_problems(kind, whole) + find_crd_problems(whole, shape)


def _without_status(body: JsonObject) -> JsonObject:
    """Those who write an object do not write its status."""
    return {name: part for name, part in body.items() if name != "status"}
