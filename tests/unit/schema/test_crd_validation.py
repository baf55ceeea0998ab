"""Validation by a CRD, with the recorded messages of a server. The e2e tests compare many more."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.objects import Json, Kind
from tidegate.schema.builtin import find_shape
from tidegate.schema.causes import format_float, quote
from tidegate.schema.crd_validation import find_crd_problems
from tidegate.schema.shape import Shape
from tidegate.schema.structural import shape_from_schema

Schema = dict[str, Json]

TEXT: Schema = {"type": "string"}
KEYED: Schema = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
}
SET: Schema = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
EITHER: Schema = {"x-kubernetes-int-or-string": True}


def a_shape(schema: Schema) -> Shape:
    """Of a kind whose field `f` has this schema."""
    return shape_from_schema({"type": "object", "properties": {"f": schema}})


def list_problems(schema: Schema, value: Json) -> list[tuple[str, str, str]]:
    problems = find_crd_problems({"f": value}, a_shape(schema))
    return [(each.field, each.reason.removeprefix("FieldValue"), each.message) for each in problems]


def test_a_good_object_has_no_problems() -> None:
    assert list_problems(TEXT, "x") == []


@pytest.mark.parametrize(
    ("schema", "value", "expected", "given"),
    [
        (TEXT, 5, "string", "integer"),
        (TEXT, None, "string", "null"),
        (TEXT, {"a": 1}, "string", "object"),
        ({"type": "integer"}, "5", "integer", "string"),
        ({"type": "integer", "format": "int32"}, "5", "integer", "string"),
        ({"type": "integer", "format": "int32"}, True, "int32", ""),
        ({"type": "number"}, "5", "number", "string"),
        ({"type": "boolean"}, "true", "boolean", "string"),
        ({"type": "array", "items": TEXT}, {}, "array", "object"),
        ({"type": "object"}, [], "object", "array"),
        ({"type": "string", "format": "date-time"}, 5, "date-time", "int64"),
        ({"type": "string", "format": "date-time"}, "x", "date-time", "x"),
        (EITHER, True, "integer,string", "boolean"),
    ],
)
def test_a_value_of_another_type_is_reported(
    schema: Schema, value: Json, expected: str, given: str
) -> None:
    message = f'Invalid value: "{given}": f in body must be of type {expected}: "{given}"'

    assert list_problems(schema, value) == [("f", "TypeInvalid", message)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1.0),
        ({"type": "number"}, 1),
        ({**TEXT, "nullable": True}, None),
        (EITHER, 5),
        (EITHER, "5%"),
        ({"x-kubernetes-preserve-unknown-fields": True}, [1, {"a": None}]),
        ({"type": "string", "format": "date-time"}, "2026-01-01T00:00:00.5+01:00"),
        ({**TEXT, "pattern": "^[[:alpha:]_]+$"}, "a_b"),
        ({**TEXT, "pattern": r"^\pL$"}, "a pattern that cannot be compiled is ignored"),
    ],
)
def test_a_value_that_the_schema_allows_passes(schema: Schema, value: Json) -> None:
    assert list_problems(schema, value) == []


@pytest.mark.parametrize(
    ("rules", "value", "reason", "message"),
    [
        (
            {"enum": ["a", "b"]},
            "c",
            "NotSupported",
            'Unsupported value: "c": supported values: "a", "b"',
        ),
        (
            {"minLength": 2},
            "a",
            "Invalid",
            'Invalid value: "a": f in body should be at least 2 chars long',
        ),
        ({"maxLength": 3}, "aaaa", "TooLong", "Too long: may not be more than 3 bytes"),
        ({"maxLength": 1}, "aa", "TooLong", "Too long: may not be more than 1 byte"),
        (
            {"pattern": "^a+$"},
            "b",
            "Invalid",
            "Invalid value: \"b\": f in body should match '^a+$'",
        ),
        (
            {"pattern": "^a+$"},
            "a\n",
            "Invalid",
            "Invalid value: \"a\\n\": f in body should match '^a+$'",
        ),
    ],
)
def test_rules_of_strings_are_checked(rules: Schema, value: str, reason: str, message: str) -> None:
    assert list_problems({**TEXT, **rules}, value) == [("f", reason, message)]


@pytest.mark.parametrize(
    ("rules", "value", "detail"),
    [
        ({"minimum": 2}, 1, "should be greater than or equal to 2"),
        ({"minimum": 2, "exclusiveMinimum": True}, 2, "should be greater than 2"),
        ({"maximum": 2}, 3, "should be less than or equal to 2"),
        ({"maximum": 2, "exclusiveMaximum": True}, 2, "should be less than 2"),
        ({"minimum": 1000000}, 5.5, "should be greater than or equal to 1e+06"),
        ({"maximum": 2.5}, 3, "should be less than or equal to 2"),
    ],
)
def test_numbers_stay_within_their_bounds(rules: Schema, value: float, detail: str) -> None:
    message = f"Invalid value: {value}: f in body {detail}"

    assert list_problems({"type": "number", **rules}, value) == [("f", "Invalid", message)]


def test_a_number_outside_its_format_is_reported_without_a_field() -> None:
    detail = "Checked value must be of type integer with format int32 in f"

    assert list_problems({"type": "integer", "format": "int32"}, 3_000_000_000) == [
        ("<nil>", "Invalid", f'Invalid value: "": {detail}')
    ]


def test_a_fraction_in_place_of_an_integer_is_reported_twice() -> None:
    assert [field for field, *_ in list_problems({"type": "integer"}, 1.5)] == ["<nil>", "f"]


@pytest.mark.parametrize(
    ("schema", "value", "reason", "message"),
    [
        (
            {"type": "array", "items": TEXT, "minItems": 1},
            [],
            "Invalid",
            "Invalid value: 0: f in body should have at least 1 items",
        ),
        (
            {"type": "array", "items": TEXT, "maxItems": 1},
            ["a", "b"],
            "TooMany",
            "Too many: 2: must have at most 1 item",
        ),
        (
            {"type": "object", "additionalProperties": TEXT, "minProperties": 1},
            {},
            "Invalid",
            "Invalid value: 0: f in body should have at least 1 properties",
        ),
    ],
)
def test_lists_and_maps_are_counted(schema: Schema, value: Json, reason: str, message: str) -> None:
    assert list_problems(schema, value) == [("f", reason, message)]


def test_a_missing_field_is_reported_with_its_path() -> None:
    assert list_problems(KEYED, [{}]) == [("f[0].name", "Required", "Required value")]


def test_a_duplicate_item_is_reported_once_with_its_second_index() -> None:
    assert list_problems(KEYED, [{"name": "a"}, {"name": "a"}, {"name": "a"}]) == [
        ("f[1]", "Duplicate", 'Duplicate value: {"name":"a"}')
    ]
    assert list_problems(SET, ["a", "b", "a", "a"]) == [
        ("f[2]", "Duplicate", 'Duplicate value: "a"')
    ]


def test_an_item_of_a_keyed_list_that_is_no_object_is_reported() -> None:
    detail = 'Invalid value: "a": must be an object for an array of list-type map'

    assert ("f[0]", "Invalid", detail) in list_problems(KEYED, ["a"])


def test_numbers_and_equal_strings_are_different_items() -> None:
    assert list_problems({**SET, "items": EITHER}, [1, "1"]) == []


def test_all_problems_are_found_and_sorted() -> None:
    shape = shape_from_schema(
        {"type": "object", "required": ["z"], "properties": {"a": TEXT, "b": TEXT}}
    )

    problems = find_crd_problems({"b": 1, "a": 1}, shape)

    assert [problem.field for problem in problems] == ["a", "b", "z"]


def test_built_in_objects_are_not_checked_against_their_schema() -> None:
    shape = find_shape(Kind("apps", "v1", "Deployment"))
    assert shape is not None

    assert find_crd_problems({"spec": {"replicas": "three"}}, shape) == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.5, "0.5"),
        (-2.0, "-2"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (123456789.0, "1.23456789e+08"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e21, "1e+21"),
    ],
)
def test_floats_are_printed_like_go(value: float, text: str) -> None:
    assert format_float(value) == text


def test_strings_are_quoted_like_go() -> None:
    assert quote('a"b\\c\n\x01é') == r'"a\"b\\c\n\x01é"'
