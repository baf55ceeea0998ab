"""Selectors that stand in objects, and selectors as text."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.labels import format_selector, parse_label_selector, selector_matches
from tidegate.model.k8s.objects import Json


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, True),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selectors_of_objects_match_labels(selector: Json, *, expected: bool) -> None:
    assert selector_matches(selector, {"app": "web"}) is expected


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["web", "db"], True),
        ("In", ["db"], False),
        ("NotIn", ["db"], True),
        ("NotIn", ["web"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["1"], False),
        ("Lt", ["1"], False),
    ],
)
def test_expressions_of_selectors(operator: str, values: list[Json], *, expected: bool) -> None:
    expression: dict[str, Json] = {"key": "app", "operator": operator, "values": values}

    assert selector_matches({"matchExpressions": [expression]}, {"app": "web"}) is expected


@pytest.mark.parametrize(
    ("operator", "bound", "cores", "expected"),
    [
        ("Gt", "3", "4", True),
        ("Gt", "4", "4", False),
        ("Lt", "10", "9", True),
        ("Lt", "10", "many", False),
        ("Gt", "-1", None, False),
    ],
)
def test_numbers_are_compared_where_there_are_numbers(
    operator: str, bound: str, cores: Json, *, expected: bool
) -> None:
    expression: dict[str, Json] = {"key": "cores", "operator": operator, "values": [bound]}
    labels = {} if cores is None else {"cores": cores}

    assert selector_matches({"matchExpressions": [expression]}, labels) is expected


def test_a_selector_means_the_same_as_an_object_and_as_text() -> None:
    selector: Json = {
        "matchLabels": {"tier": "front", "app": "web"},
        "matchExpressions": [
            {"key": "zone", "operator": "In", "values": ["a", "b"]},
            {"key": "canary", "operator": "NotIn", "values": ["yes"]},
            {"key": "owner", "operator": "Exists"},
            {"key": "gone", "operator": "DoesNotExist"},
        ],
    }
    labels: dict[str, Json] = {"app": "web", "tier": "front", "zone": "b", "owner": ""}
    others = [{**labels, key: "yes"} for key in ("app", "zone", "canary", "gone")] + [{}]

    text = format_selector(selector)

    assert text == "app=web,tier=front,zone in (a,b),canary notin (yes),owner,!gone"
    for item in (labels, *others):
        by_text = all(expected.matches(item) for expected in parse_label_selector(text))
        assert by_text is selector_matches(selector, item) is (item is labels)
