"""Label selectors that stand in objects."""

from __future__ import annotations

import pytest

from tidegate.model.labels import matches
from tidegate.model.objects import Json


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
def test_selectors_that_stand_in_objects(selector: Json, *, expected: bool) -> None:
    assert matches(selector, {"app": "web"}) is expected


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["web", "db"], True),
        ("In", ["db"], False),
        ("NotIn", ["db"], True),
        ("NotIn", ["web"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_expressions_of_selectors(operator: str, values: list[Json], *, expected: bool) -> None:
    expression: dict[str, Json] = {"key": "app", "operator": operator, "values": values}

    assert matches({"matchExpressions": [expression]}, {"app": "web"}) is expected
