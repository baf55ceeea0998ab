"""Sets of places: what is in them, and how servers write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.objects import Json
from tidegate.sandbox.ownership.fields import (
    LEAF,
    NOTHING,
    Fields,
    fields_from,
    read_fields,
    show_path,
    write_fields,
)

NAMES = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
SETS = st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=8).map(fields_from)


def paths_of(fields: Fields) -> list[tuple[str, ...]]:
    return list(fields.paths())


def test_a_place_and_what_is_below_it_are_two_places() -> None:
    fields = read_fields({"f:data": {".": {}, "f:color": {}}})

    assert paths_of(fields) == [("f:data",), ("f:data", "f:color")]


def test_the_way_to_a_place_is_not_in_the_set() -> None:
    fields = read_fields({"f:data": {"f:color": {}}})

    assert paths_of(fields) == [("f:data", "f:color")]


def test_elements_of_an_unknown_kind_are_dropped() -> None:
    assert read_fields({"f:a": {}, "x:what": {"f:b": {}}}) == fields_from([["f:a"]])


def test_keys_are_the_same_in_any_order() -> None:
    one = read_fields({'k:{"port":80,"protocol":"TCP"}': {}})
    other = read_fields({'k:{"protocol": "TCP", "port": 80}': {}})

    assert one == other


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
def test_what_a_server_wrote_is_written_again(written: dict[str, Json]) -> None:
    assert json.dumps(write_fields(read_fields(written))) == json.dumps(written)


def test_fields_come_before_keys_before_values_and_numbers_by_size() -> None:
    fields = fields_from([['v:"a"'], ['k:{"port":443}'], ['k:{"port":80}'], ["f:z"], ["v:2"]])

    assert list(write_fields(fields)) == [
        "f:z",
        'k:{"port":80}',
        'k:{"port":443}',
        "v:2",
        'v:"a"',
    ]


def test_a_path_is_shown_as_conflicts_show_it() -> None:
    path = ("f:spec", 'k:{"port":80,"protocol":"TCP"}', "f:name")

    assert show_path(path) == '.spec[port=80,protocol="TCP"].name'
    assert show_path(("f:metadata", "f:finalizers", 'v:"a"')) == '.metadata.finalizers[="a"]'


def test_a_difference_keeps_what_is_below_a_removed_place() -> None:
    fields = read_fields({"f:data": {".": {}, "f:color": {}}})

    assert fields - fields_from([["f:data"]]) == read_fields({"f:data": {"f:color": {}}})


def test_outside_a_place_is_nothing_that_is_below_it() -> None:
    fields = read_fields({"f:spec": {"f:a": {}}, "f:status": {"f:b": {"f:c": {}}}})

    assert fields.outside(fields_from([["f:status"]])) == read_fields({"f:spec": {"f:a": {}}})


@given(SETS, SETS)
def test_a_union_has_the_places_of_both(one: Fields, other: Fields) -> None:
    assert set((one | other).paths()) == {*one.paths(), *other.paths()}


@given(SETS, SETS)
def test_an_intersection_has_the_places_that_both_have(one: Fields, other: Fields) -> None:
    assert set((one & other).paths()) == {*one.paths()} & {*other.paths()}


@given(SETS, SETS)
def test_a_difference_has_the_places_that_only_one_has(one: Fields, other: Fields) -> None:
    assert set((one - other).paths()) == {*one.paths()} - {*other.paths()}


@given(SETS, SETS)
def test_a_set_without_another_is_empty_where_the_other_has_it_all(
    one: Fields, other: Fields
) -> None:
    assert (one - (one | other)).is_empty
    assert (one - (one | other)) is NOTHING


@given(SETS)
def test_an_operation_that_changes_nothing_gives_the_set_itself(fields: Fields) -> None:
    assert (fields | fields) is fields
    assert (fields | NOTHING) is fields
    assert (fields - NOTHING) is fields
    assert fields.outside(NOTHING) is fields


@given(SETS)
def test_reading_what_was_written_gives_the_same_set(fields: Fields) -> None:
    assert read_fields(write_fields(fields)) == fields


def test_leaves_are_shared() -> None:
    assert read_fields({"f:a": {}}).below["f:a"] is LEAF
