"""The language of `--set`, compared with the parser of Helm itself."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable

import pytest

from tidegate.errors import RenderError
from tidegate.external.process import Command
from tidegate.external.worker import Workers
from tidegate.render.helm.parameters import (
    SetInteger,
    Values,
    set_content,
    set_literal,
    set_strings,
    set_typed,
)

HELM = """
import json
from helm_python import _native
from helm_python.errors import HelmError
from tidegate.external.worker_main import serve

def answer(request):
    function, lines = json.loads(request)
    answers = []
    for line in lines:
        try:
            answers.append(json.loads(_native.call_string(function, line)))
        except HelmError:
            answers.append(None)
    return json.dumps(answers).encode()

serve(answer)
"""
PIECES = [
    *("a", "b", "key", "=", "=", "=", ".", ".", ",", "[0]", "[1]", "[2]", "{", "}", "\\"),
    *("[", "]", "1", "007", "0", "-5", "+7", "1234567", "true", "False", "null", "ü", " ", "1.5"),
    *("99999999999999999999", "[-1]", "[x]", "[65537]", "a=1", "b=x", "{a,1}"),
]


def lines() -> list[str]:
    rng = random.Random(7)
    return ["".join(rng.choices(PIECES, k=rng.randint(1, 9))) for _ in range(4000)]


@pytest.mark.parametrize(
    ("function", "ours"),
    [
        ("helm_strvals_parse", set_typed),
        ("helm_strvals_parse_string", set_strings),
        ("helm_strvals_parse_literal", set_literal),
    ],
)
async def test_any_line_means_the_same_as_in_helm(
    function: str, ours: Callable[[str, Values], None]
) -> None:
    command = Command(argv=(sys.executable, "-I", "-c", HELM))
    async with Workers(command, count=1) as workers:
        theirs = json.loads(await workers.request(json.dumps([function, lines()]).encode()))

    different = {
        line: (mine, helm)
        for line, helm in zip(lines(), theirs, strict=True)
        if (mine := attempt(ours, line)) != helm
    }

    assert different == {}
    assert sum(each is not None for each in theirs) > 500


def attempt(parse: Callable[[str, Values], None], line: str) -> Values | None:
    values: Values = {}
    try:
        parse(line, values)
    except RenderError:
        return None
    return values


def test_digits_of_a_parameter_are_an_integer_that_is_marked_as_such() -> None:
    values: Values = {}

    set_typed("a=1234567,b={1,x},c=1.5,d=007", values)

    assert values == {"a": 1234567, "b": [1, "x"], "c": "1.5", "d": "007"}
    assert isinstance(values["a"], SetInteger)


def test_a_line_changes_existing_values() -> None:
    values: Values = {"list": ["a", "b"], "map": {"kept": "yes"}}

    set_typed("list[1]=c,map.added=true", values)

    assert values == {"list": ["a", "c"], "map": {"kept": "yes", "added": True}}


def test_the_content_of_a_file_is_not_read_as_a_line() -> None:
    values: Values = {}

    set_content("tls.key", "a=1,{b}\n", values)

    assert values == {"tls": {"key": "a=1,{b}\n"}}


def test_a_mistake_names_the_parameter_and_not_its_value() -> None:
    with pytest.raises(RenderError) as caught:
        set_typed("password.x=hunter2", {"password": "hunter2"})

    assert caught.value.code == "render.helm.parameter"
    assert "`password.x`" in caught.value.problem
    assert "hunter2" not in str(caught.value)
