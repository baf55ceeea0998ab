"""Sets of fields: what is in them, and how servers write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.k8s.objects import Json
from tidegate.sandbox.ownership.fields import (
    EMPTY,
    LEAF,
    FieldSet,
    field_set_from_paths,
    format_path,
    parse_fields_v1,
    to_fields_v1,
)

NAMES = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
SETS = st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=8).map(field_set_from_paths)


def paths_of(fields: FieldSet) -> list[tuple[str, ...]]:
    return list(fields.paths())


def test_a_field_and_a_field_below_it_are_two_fields() -> None:
    fields = parse_fields_v1({"f:data": {".": {}, "f:color": {}}})

    assert paths_of(fields) == [("f:data",), ("f:data", "f:color")]


def test_the_parents_of_a_field_are_not_in_the_set() -> None:
    fields = parse_fields_v1({"f:data": {"f:color": {}}})

    assert paths_of(fields) == [("f:data", "f:color")]


def test_elements_of_an_unknown_kind_are_dropped() -> None:
    assert parse_fields_v1({"f:a": {}, "x:what": {"f:b": {}}}) == field_set_from_paths([["f:a"]])


def test_keys_are_the_same_in_any_order() -> None:
    fields_v1 = parse_fields_v1({'k:{"port":80,"protocol":"TCP"}': {}})
    second = parse_fields_v1({'k:{"protocol": "TCP", "port": 80}': {}})

    assert fields_v1 == second


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"f:spec": {"f:replicas": {}}},
        {"f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
        {"f:finalizers": {".": {}, 'v:"example.org/hold"': {}}},
        {"f:set": {r'v:"\u003c\u0026\u003e"': {}}},
    ],
)
def test_the_output_of_a_server_is_written_again(written: dict[str, Json]) -> None:
    assert json.dumps(to_fields_v1(parse_fields_v1(written))) == json.dumps(written)


def test_path_elements_have_the_order_of_the_server() -> None:
    fields = field_set_from_paths(
        [['v:"a"'], ['k:{"port":443}'], ['k:{"port":80}'], ["f:z"], ["v:2"]]
    )

    assert list(to_fields_v1(fields)) == [
        "f:z",
        'k:{"port":80}',
        'k:{"port":443}',
        "v:2",
        'v:"a"',
    ]


def test_a_path_is_shown_as_conflicts_show_it() -> None:
    path = ("f:spec", 'k:{"port":80,"protocol":"TCP"}', "f:name")

    assert format_path(path) == '.spec[port=80,protocol="TCP"].name'
    assert format_path(("f:metadata", "f:finalizers", 'v:"a"')) == '.metadata.finalizers[="a"]'


def test_a_difference_keeps_fields_below_a_removed_field() -> None:
    fields = parse_fields_v1({"f:data": {".": {}, "f:color": {}}})

    assert fields - field_set_from_paths([["f:data"]]) == parse_fields_v1(
        {"f:data": {"f:color": {}}}
    )


def test_a_recursive_difference_removes_fields_below_a_removed_field() -> None:
    fields = parse_fields_v1({"f:spec": {"f:a": {}}, "f:status": {"f:b": {"f:c": {}}}})

    assert fields.recursive_difference(field_set_from_paths([["f:status"]])) == parse_fields_v1(
        {"f:spec": {"f:a": {}}}
    )


@given(SETS, SETS)
def test_a_union_has_the_fields_of_both(first: FieldSet, second: FieldSet) -> None:
    assert set((first | second).paths()) == {*first.paths(), *second.paths()}


@given(SETS, SETS)
def test_an_intersection_has_the_fields_that_both_have(first: FieldSet, second: FieldSet) -> None:
    assert set((first & second).paths()) == {*first.paths()} & {*second.paths()}


@given(SETS, SETS)
def test_a_difference_has_the_fields_that_only_one_has(first: FieldSet, second: FieldSet) -> None:
    assert set((first - second).paths()) == {*first.paths()} - {*second.paths()}


@given(SETS, SETS)
def test_the_difference_with_a_superset_is_empty(first: FieldSet, second: FieldSet) -> None:
    assert (first - (first | second)).is_empty
    assert (first - (first | second)) is EMPTY


@given(SETS)
def test_an_operation_that_changes_nothing_gives_the_set_itself(fields: FieldSet) -> None:
    assert (fields | fields) is fields
    assert (fields | EMPTY) is fields
    assert (fields - EMPTY) is fields
    assert fields.recursive_difference(EMPTY) is fields


@given(SETS)
def test_reading_what_was_written_gives_the_same_set(fields: FieldSet) -> None:
    assert parse_fields_v1(to_fields_v1(fields)) == fields


def test_leaves_are_shared() -> None:
    assert parse_fields_v1({"f:a": {}}).children["f:a"] is LEAF
