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
from tidegate.schema.builtin import object_meta, shape_of
from tidegate.schema.crd_validation import find_problems, is_readable
from tidegate.schema.defaulting import drop_nulls, fill_defaults, prune, unknown_fields
from tidegate.schema.shape import Shape
from tidegate.schema.structural import INT_OR_STRING, Schema, schema_in, shapes_of
from tidegate.schema.types import find_decode_problem, find_typed_problems
from tidegate.schema.validation.definitions import find_definition_problems, nodes_of
from tidegate.schema.validation.requirements import find_unmet
from tidegate.world.messages import Cause

DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
UNCHECKED = ("x-kubernetes-validations", "allOf", "oneOf", "not", "multipleOf")
"""What a CRD can ask for and only a server can answer."""
PLAIN_FORMATS = frozenset({"", "date-time", "double", "float", "int32", "int64", "password"})
READ = 256
"""How many definitions are kept read; a plan that brings more of them reads some twice."""


class Misfit(msgspec.Struct, frozen=True):
    """What is wrong with a body; nothing, where all is empty.

    `unreadable`: it is not of its kind. `invalid`: it lacks something, or holds a value that may
    not stand there. `partial`: its kind asks for more than was checked.
    """

    unreadable: tuple[Cause, ...] = ()
    invalid: tuple[Cause, ...] = ()
    partial: bool = False


def find_misfit(
    kind: Kind, body: JsonObject, *, definition: bytes = b"", applied: bool = True
) -> Misfit | None:
    """What is wrong with a body that is to be applied, or else created; None: nothing is known.

    `definition` is the CRD of a kind that Kubernetes does not bring.
    """
    own = shape_of(kind)
    if own is not None:
        unreadable = _unreadable(body, own, body, own, applied=applied)
        return Misfit(unreadable, () if unreadable else _unmet(kind, body))
    found = read_definition(definition).get(kind) if definition else None
    if found is None:
        return None
    shape, partial = found
    unreadable = _unreadable(body, shape, body.get("metadata"), object_meta(), applied=applied)
    invalid = () if unreadable else find_unmet_custom(kind, body, shape, applied=applied)
    return Misfit(unreadable, invalid, partial)


@lru_cache(maxsize=READ)
def read_definition(definition: bytes) -> Mapping[Kind, tuple[Shape, bool]]:
    """The kinds of a CRD: their shapes, and whether a schema says more than is checked."""
    spec = get_mapping(msgspec.json.decode(definition), "spec")
    shapes = shapes_of(spec)
    kinds: dict[Kind, tuple[Shape, bool]] = {}
    for version in get_mappings(spec, "versions"):
        name = get_text(version, "name")
        if version.get("served") is True and name in shapes:
            kind = Kind(get_text(spec, "group"), name, get_text(spec, "names", "kind"))
            kinds[kind] = shapes[name], _says_more(get_mapping(schema_in(version)))
    return kinds


def _unreadable(
    body: JsonObject, shape: Shape, typed: Json, type_: Shape, *, applied: bool
) -> tuple[Cause, ...]:
    """What keeps a body from being read; only its `typed` part is made a type of."""
    if applied:
        causes = find_typed_problems(body, shape)
    else:
        unknown = sorted(unknown_fields(body, shape))
        causes = tuple(Cause(field, "unknown", "unknown field") for field in unknown)
    problem = "" if causes else find_decode_problem(typed, type_)
    return (Cause("", "type", problem),) if problem else causes


def _unmet(kind: Kind, body: JsonObject) -> tuple[Cause, ...]:
    causes = find_unmet(kind, _without_status(body))
    return causes + find_definition_problems(body) if kind == DEFINITION else causes


def find_unmet_custom(
    kind: Kind, body: JsonObject, shape: Shape, *, applied: bool
) -> tuple[Cause, ...]:
    """What a server asks of a custom object that it can read, sorted; a status is left out."""
    known = prune(_without_status(body), shape)
    whole = fill_defaults(known if applied else drop_nulls(known, shape), shape)
    return find_unmet(kind, whole) + find_problems(whole, shape)


def _without_status(body: JsonObject) -> JsonObject:
    """Those who write an object do not write its status."""
    return {name: part for name, part in body.items() if name != "status"}


def _says_more(schema: Schema) -> bool:
    return bool(get_mapping(schema, "properties", "metadata", "properties")) or any(
        _is_beyond(each) for each, _ in nodes_of(schema, "")
    )


def _is_beyond(schema: Schema) -> bool:
    either = "anyOf" in schema and schema.get(INT_OR_STRING) is not True
    is_formatted = str(schema.get("format", "")) not in PLAIN_FORMATS
    is_strange = not is_readable(str(schema.get("pattern", "")))
    return either or is_formatted or is_strange or any(name in schema for name in UNCHECKED)
