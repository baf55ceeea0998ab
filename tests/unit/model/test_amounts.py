"""Numbers that rows compare with."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.unit.model.invalid_values import invalid_value_error
from tidegate.model.k8s.objects import Json
from tidegate.model.operators.amounts import evaluate_amount, parse_amount

BODY: dict[str, Json] = {
    "spec": {"replicas": 3, "sets": [{"size": 2}, {"size": 3}], "text": "12", "on": True},
    "status": {"pods": {"a": "RUNNING", "b": "FAILED", "c": "RUNNING"}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("spec.replicas", 3),
        ("spec.text", 12),
        ("spec.nothing", 0),
        ("spec.nothing|2", 2),
        ("spec.on|7", 7),
        ("count(spec.sets)", 2),
        ("count(status.pods)", 3),
        ("count(status.pods,RUNNING)", 2),
        ("sum(spec.sets,size)", 5),
        ("spec.replicas - 1 + sum(spec.sets,size)", 7),
    ],
)
def test_an_amount_is_made_from_an_object(text: str, value: int) -> None:
    assert evaluate_amount(BODY, text) == value


def test_an_invalid_amount_is_refused(wording: RecordedWording) -> None:
    texts = ["", "1 +", "1 * 2", "count(", "spec.a|b", "sum(a,b,c)"]

    wording(f"`{text}`: {invalid_value_error(parse_amount, text)}" for text in texts)
