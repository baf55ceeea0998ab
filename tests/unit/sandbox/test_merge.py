"""Merging an applied intent into a live value."""

from __future__ import annotations

import copy

import pytest

from tests.support.objects import DEPLOYMENT, SERVICE
from tests.support.write_answers import gate_shape
from tidegate.model.k8s.objects import Json
from tidegate.sandbox.ownership.compare import is_same_json
from tidegate.sandbox.ownership.merge import merge
from tidegate.schema.builtin import find_shape
from tidegate.schema.shape import DEDUCED, Shape


def deployment_shape() -> Shape:
    shape = find_shape(DEPLOYMENT)
    assert shape is not None
    return shape


def items(names: str) -> list[Json]:
    return [{"name": name} for name in names]


def names_in(body: Json) -> str:
    assert isinstance(body, dict)
    spec = body["spec"]
    assert isinstance(spec, dict)
    result = spec["map"]
    assert isinstance(result, list)
    return "".join(str(item["name"]) for item in result if isinstance(item, dict))


@pytest.mark.parametrize(
    ("live", "intent", "merged"),
    [
        ("abc", "", "abc"),
        ("abc", "b", "abc"),
        ("abc", "ca", "bca"),
        ("abcde", "dxb", "acdexb"),
        ("abc", "xyz", "abcxyz"),
        ("abc", "xa", "xabc"),
        ("ab", "bxa", "bxa"),
        ("ca", "axc", "axc"),
        ("abcd", "dcba", "dcba"),
        ("", "ca", "ca"),
    ],
)
def test_items_have_the_order_of_the_applied_list(live: str, intent: str, merged: str) -> None:
    body: Json = {"spec": {"map": items(live)}}

    result = merge(body, {"spec": {"map": items(intent)}}, gate_shape())

    assert names_in(result) == merged


def test_an_intent_that_changes_nothing_gives_the_live_value_itself() -> None:
    live: Json = {
        "spec": {
            "replicas": 1,
            "template": {"spec": {"containers": [{"name": "app", "image": "a", "stdin": True}]}},
        }
    }
    intent: Json = {
        "spec": {"template": {"spec": {"containers": [{"name": "app", "image": "a"}]}}},
    }

    assert merge(live, intent, deployment_shape()) is live


def test_unchanged_parts_are_shared_and_nothing_is_changed_in_place() -> None:
    live: dict[str, Json] = {"spec": {"replicas": 1}, "metadata": {"labels": {"a": "b"}}}
    untouched = copy.deepcopy(live)

    merged = merge(live, {"spec": {"replicas": 2}}, deployment_shape())

    assert isinstance(merged, dict)
    assert merged["spec"] == {"replicas": 2}
    assert merged["metadata"] is live["metadata"]
    assert live == untouched


def test_an_atomic_map_is_replaced() -> None:
    shape = find_shape(SERVICE)
    assert shape is not None

    merged = merge({"spec": {"selector": {"a": "b"}}}, {"spec": {"selector": {"c": "d"}}}, shape)

    assert merged == {"spec": {"selector": {"c": "d"}}}


@pytest.mark.parametrize(
    ("live", "intent", "merged"),
    [
        ({"a": 1}, None, {"a": 1}),
        ({}, None, None),
        (None, {}, {}),
        (1, None, None),
        (1, True, True),
        (1, {"a": 1}, {"a": 1}),
        ({"a": 1}, 1, 1),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ([1, 2], [2], [2]),
    ],
)
def test_without_a_schema_only_maps_are_merged(live: Json, intent: Json, merged: Json) -> None:
    assert is_same_json(merge(live, intent, DEDUCED), merged)


def test_a_missing_key_of_an_item_is_its_default() -> None:
    shape = find_shape(SERVICE)
    assert shape is not None

    merged = merge(
        {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}},
        {"spec": {"ports": [{"port": 80, "name": "web"}]}},
        shape,
    )

    assert merged == {"spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "web"}]}}


def test_duplicate_live_items_are_replaced_by_the_applied_one() -> None:
    live: Json = {"spec": {"map": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}}

    merged = merge(live, {"spec": {"map": [{"name": "a", "port": 3}]}}, gate_shape())

    assert merged == {"spec": {"map": [{"name": "a", "port": 3}]}}


def test_true_is_not_one() -> None:
    assert not is_same_json([1], [True])
    assert is_same_json([1, {"a": 1}], [1.0, {"a": 1}])
