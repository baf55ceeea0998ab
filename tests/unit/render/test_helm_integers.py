"""The template that keeps integers: added only when it is needed, and only for these values."""

from __future__ import annotations

import pytest

from tidegate.render.helm.parameters import Values, set_strings, set_typed
from tidegate.render.helm.worker.integers import integer_template, integer_template_path


def test_without_an_integer_from_a_parameter_no_template_is_needed() -> None:
    values: Values = {"replicas": 3, "list": [1, {"a": 2}], "global": {"size": 5}}

    set_typed("tag=v1,on=true,none=null", values)
    set_strings("port=8080", values)

    assert integer_template(values) == ""


@pytest.mark.parametrize("line", ["a=1", "a.b=1", "a[0]=1", "a[0].b=1", "a[0][0]=1", "global.a=1"])
def test_an_integer_anywhere_needs_the_template(line: str) -> None:
    values: Values = {}

    set_typed(line, values)

    assert '(int64 "1")' in integer_template(values)


def test_values_from_elsewhere_are_not_changed() -> None:
    values: Values = {"theirs": 1234567, "map": {"theirs": 2345678}}

    set_typed("map.ours=3456789", values)

    text = integer_template(values)
    assert "3456789" in text
    assert "theirs" not in text


def test_a_key_cannot_break_out_of_its_quotes() -> None:
    values: Values = {}

    set_typed('a" }}{{ fail "x=1', values)

    assert '"a\\" }}{{ fail \\"x"' in integer_template(values)


def test_the_template_has_a_longer_path_than_every_other_one() -> None:
    assert integer_template_path(3).count("/") > 3
