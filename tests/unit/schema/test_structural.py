"""Shapes that are made from the schemas of CRDs."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.objects import Json
from tidegate.schema.builtin import object_meta_shape
from tidegate.schema.shape import Merge, Shape, Type, find_child_shape
from tidegate.schema.structural import shape_from_schema, shapes_from_crd

Schema = dict[str, Json]

TEXT: Schema = {"type": "string"}
KEYED: Schema = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name", "protocol"],
    "items": {
        "type": "object",
        "properties": {"name": TEXT, "protocol": {"type": "string", "default": "TCP"}},
    },
}


def field_shape(schema: Schema) -> Shape:
    """The shape of a field with this schema."""
    child_shape = find_child_shape(
        shape_from_schema({"type": "object", "properties": {"field": schema}}), "field"
    )
    assert child_shape is not None
    return child_shape


def test_every_version_has_its_own_shape() -> None:
    def version(name: str, field: str) -> Json:
        schema: Json = {"type": "object", "properties": {field: TEXT}}
        return {"name": name, "schema": {"openAPIV3Schema": schema}}

    shapes = shapes_from_crd({"versions": [version("v1", "old"), version("v2", "new")]})

    assert [*shapes] == ["v1", "v2"]
    assert find_child_shape(shapes["v1"], "old") is not None
    assert find_child_shape(shapes["v2"], "old") is None


def test_metadata_and_kind_need_no_schema() -> None:
    shape = shape_from_schema({"type": "object"})

    assert find_child_shape(shape, "metadata") is object_meta_shape()
    assert find_child_shape(shape, "kind") is not None
    assert find_child_shape(shape, "spec") is None


@pytest.mark.parametrize(
    ("schema", "merge"),
    [
        (TEXT, Merge.ATOMIC),
        ({"type": "array", "items": TEXT}, Merge.ATOMIC),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "atomic"}, Merge.ATOMIC),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, Merge.SET),
        (KEYED, Merge.KEYED),
        ({"type": "object", "additionalProperties": TEXT}, Merge.FIELDS),
        ({"type": "object", "properties": {"a": TEXT}}, Merge.FIELDS),
        ({"type": "object", "x-kubernetes-map-type": "atomic"}, Merge.ATOMIC),
        ({"x-kubernetes-int-or-string": True}, Merge.ATOMIC),
        ({"x-kubernetes-preserve-unknown-fields": True}, Merge.FIELDS),
    ],
)
def test_a_schema_decides_how_a_field_is_merged(schema: Schema, merge: Merge) -> None:
    assert field_shape(schema).merge is merge


def test_a_keyed_list_knows_its_keys_and_their_defaults() -> None:
    shape = field_shape(KEYED)

    assert shape.keys == ("name", "protocol")
    assert shape.key_defaults == {"protocol": "TCP"}


def test_an_open_field_keeps_unknown_fields() -> None:
    known: Schema = {"type": "object", "properties": {"a": TEXT}}
    shape = field_shape(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": known},
        }
    )

    inner = find_child_shape(shape, "known")
    assert inner is not None
    assert shape.is_open
    assert not inner.is_open
    assert inner.is_lenient


def test_an_object_without_a_schema_can_be_applied_but_keeps_nothing() -> None:
    shape = field_shape({"type": "object"})

    assert shape.is_lenient
    assert not shape.is_open


def test_an_embedded_object_has_metadata_and_a_kind() -> None:
    shape = field_shape({"type": "object", "x-kubernetes-embedded-resource": True})

    assert find_child_shape(shape, "metadata") is object_meta_shape()
    assert shape.required == {"apiVersion", "kind"}


def test_types_nullability_defaults_and_rules_are_read() -> None:
    shape = field_shape(
        {"type": "integer", "format": "int32", "nullable": True, "default": 3, "minimum": 1}
    )

    assert (shape.type, shape.format) == (Type.INTEGER, "int32")
    assert shape.is_nullable
    assert shape.default == 3
    assert shape.rules is not None
    assert shape.rules.minimum == 1


def test_an_object_knows_the_defaults_of_its_fields() -> None:
    schema: Schema = {"type": "object", "properties": {"a": {**TEXT, "default": "x"}, "b": TEXT}}

    assert field_shape(schema).defaults == {"a": "x"}


def test_a_schema_without_rules_has_none() -> None:
    assert field_shape(TEXT).rules is None
