"""Checks of objects: the value at a path, and whether it is allowed."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.unit.model.invalid_values import invalid_value_error
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.paths import find_value, parse_path
from tidegate.model.operators.checks import check_passes
from tidegate.model.operators.rows import Check

BODY: dict[str, Json] = {
    "metadata": {"annotations": {"a.b/c": "yes"}},
    "spec": {"ports": [{"name": "http"}, {"name": "admin"}], "paused": False, "size": 1},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.size", 1),
        ("spec.ports[1].name", "admin"),
        ("spec.ports[7].name", None),
        ("spec.ports[name=http].name", "http"),
        ('metadata.annotations["a.b/c"]', "yes"),
        ("spec.size.more", None),
    ],
)
def test_a_path_leads_to_its_value(path: str, value: Json) -> None:
    assert find_value(BODY, path) == value


def test_an_invalid_path_is_refused(wording: RecordedWording) -> None:
    texts = ["", ".spec", "spec..size", "spec[", "spec.ports[x]"]

    wording(f"`{text}`: {invalid_value_error(parse_path, text)}" for text in texts)


@pytest.mark.parametrize(
    ("check", "is_so"),
    [
        (Check(condition="Ready"), True),
        (Check(condition="Ready", values=("False",)), False),
        (Check(path="spec.size", values=(1, 2)), True),
        (Check(path="spec.size", values=(True,)), False),
        (Check(path="spec.paused"), False),
        (Check(path="spec.ports"), True),
        (Check(path="spec.paused", absent=True), False),
        (Check(path="spec.nothing", absent=True), True),
        (Check(path="spec.nothing", absent=True, negated=True), False),
        (Check(path="spec.size", values=(2,), negated=True), True),
        (Check(path="spec.size", equals="spec.size"), True),
        (Check(path="spec.nothing", equals="status.nothing"), True),
        (Check(path="spec.size", equals="spec.paused"), False),
        (Check(path="count(spec.ports)", at_least=2), True),
        (Check(path="spec.size", at_least="count(spec.ports)"), False),
        (Check(path="spec.ports[0].name", matches="^ht"), True),
        (Check(path="spec.size", matches="1"), False),
        (Check(path="spec.ports[-1].name", values=("admin",)), True),
    ],
)
def test_a_check_holds_or_does_not(check: Check, *, is_so: bool) -> None:
    assert check_passes(check, BODY) is is_so
