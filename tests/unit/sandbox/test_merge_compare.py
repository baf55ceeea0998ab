"""Fields that a second value writes and removes."""

from __future__ import annotations

import pytest

from tests.support.write_answers import gate_shape
from tidegate.model.k8s.objects import Json
from tidegate.sandbox.ownership.compare import (
    Comparison,
    collect_all_fields,
    collect_fields,
    compare,
)
from tidegate.sandbox.ownership.fields import FieldSet, to_fields_v1
from tidegate.sandbox.ownership.layout import get_layout
from tidegate.schema.shape import DEDUCED

Written = dict[str, Json]


def fields_of(comparison: Comparison) -> tuple[Written, Written]:
    return to_fields_v1(comparison.written), to_fields_v1(comparison.removed)


@pytest.mark.parametrize(
    ("before", "after", "written", "removed"),
    [
        ({"color": "a"}, {"color": "b"}, {"f:color": {}}, {}),
        ({}, {"color": "b"}, {"f:color": {}}, {}),
        ({"color": "a"}, {}, {}, {"f:color": {}}),
        ({"set": ["x", "y"]}, {"set": ["y", "x"]}, {}, {}),
        ({"set": ["x"]}, {"set": ["y"]}, {"f:set": {'v:"y"': {}}}, {"f:set": {'v:"x"': {}}}),
        ({"atomic": ["x", "y"]}, {"atomic": ["y", "x"]}, {"f:atomic": {}}, {}),
        (
            {},
            {"map": [{"name": "a"}]},
            {"f:map": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}}}},
            {},
        ),
        (
            {"map": []},
            {"map": [{"name": "a"}]},
            {"f:map": {'k:{"name":"a"}': {".": {}, "f:name": {}}}},
            {},
        ),
        ({"map": []}, {"map": None}, {"f:map": {}}, {}),
        ({"set": ["x", "x"]}, {"set": ["x"]}, {"f:set": {'v:"x"': {}}}, {"f:set": {'v:"x"': {}}}),
    ],
)
def test_a_comparison_finds_written_and_removed_fields(
    before: Written, after: Written, written: Written, removed: Written
) -> None:
    comparison = compare({"spec": before}, {"spec": after}, gate_shape())

    expected = [{"f:spec": part} if part else {} for part in (written, removed)]
    assert [*fields_of(comparison)] == expected


@pytest.mark.parametrize(
    ("before", "after", "written", "removed"),
    [
        ({"x": {"a": 1}}, {"x": 1}, {"f:x": {}}, {"f:x": {"f:a": {}}}),
        ({"x": 1}, {"x": {"a": 1}}, {"f:x": {".": {}, "f:a": {}}}, {}),
        ({"x": {"a": 1}}, {"x": None}, {}, {"f:x": {"f:a": {}}}),
        ({"x": None}, {"x": 1}, {"f:x": {}}, {}),
        ({"x": 1}, {"x": True}, {"f:x": {}}, {}),
        ({"x": [1]}, {"x": [1, 2]}, {"f:x": {}}, {}),
    ],
)
def test_a_value_without_a_schema_may_become_another_sort_of_value(
    before: Written, after: Written, written: Written, removed: Written
) -> None:
    assert fields_of(compare(before, after, DEDUCED)) == (written, removed)


def test_shared_parts_are_not_compared() -> None:
    class Unseen(dict[str, Json]):
        def items(self) -> None:  # type: ignore[override]
            raise AssertionError("looked at")

    shared = Unseen(color="red")

    comparison = compare({"spec": shared, "kind": "a"}, {"spec": shared, "kind": "b"}, gate_shape())

    assert fields_of(comparison) == ({"f:kind": {}}, {})


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"spec": {}}, {"f:spec": {}}),
        ({"spec": None}, {"f:spec": {}}),
        ({"spec": {"set": []}}, {}),
        ({"spec": {"atomic": []}}, {"f:spec": {"f:atomic": {}}}),
        ({"metadata": {"labels": {"a": "b"}}}, {"f:metadata": {"f:labels": {"f:a": {}}}}),
        ({"status": {"a": {"b": [1]}}}, {"f:status": {"f:a": {".": {}, "f:b": {}}}}),
    ],
)
def test_an_intent_names_leaves_items_and_free_names(value: Json, fields: Written) -> None:
    assert to_fields_v1(collect_fields(value, gate_shape())[0]) == fields


def test_a_whole_value_has_its_containers_too() -> None:
    all_fields = collect_all_fields({"spec": {"set": ["x"]}}, get_layout(gate_shape()))

    assert isinstance(all_fields, FieldSet)
    assert to_fields_v1(all_fields) == {
        ".": {},
        "f:spec": {".": {}, "f:set": {".": {}, 'v:"x"': {}}},
    }
