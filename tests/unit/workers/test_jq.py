"""jq in a worker: where expressions lead, what is refused, and that strangers do no harm."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import jq as oracle  # type: ignore[import-not-found]
import pytest

from tests.support.live_objects import find_paths
from tests.support.recorded_wording import RecordedWording
from tidegate.errors import DialectError
from tidegate.external.process import MIB, Limits
from tidegate.model.k8s.objects import JsonObject, Kind, Ref
from tidegate.model.plans.plan import PlanItem
from tidegate.model.times import Ms
from tidegate.model.units.ignore_differences import DifferencePaths, IgnoreDifference
from tidegate.plan.diff.ignore_differences import with_live_values
from tidegate.workers.jq import Jq

ITEM = PlanItem(ref=Ref(Kind("", "v1", "Secret"), "shop", "key"), origin="key.yaml:3")
BODY: JsonObject = {
    "kind": "Secret",
    "data": {"password": "hunter2", "app.conf": "x"},
    "list": [{"name": "a", "n": 1}, {"name": "istio-b"}, 3, [4, 5, 6], {"name": "c", "n": None}],
    "deep": {"deeper": {"name": "d"}},
}
ENDLESS = "if .data then def f: f; f else .a end"
"""It ends where nothing is in the object, as when its file is read."""
SMALL = Limits(time=Ms(30_000), memory=64 * MIB, output=MIB)


@pytest.fixture(scope="module")
def jq() -> Iterator[Jq]:
    with closing(Jq()) as running:
        yield running


def read_result(jq: Jq, *expressions: str, desired: JsonObject = BODY) -> DifferencePaths:
    paths, none = jq.paths_for(ITEM)(expressions, (desired, {}))
    assert not any(none)
    return paths


def refusal(jq: Jq, expression: str) -> DialectError:
    with pytest.raises(DialectError) as caught:
        jq.check(expression)
    return caught.value


@pytest.mark.parametrize(
    "expression",
    [
        ".data",
        '.data["app.conf"]',
        ".missing.deeper",
        ".list[-1]",
        ".list[-9]",
        ".list[1.7]",
        ".list[1:3]",
        ".list[-2:]",
        ".list[1:][1]",
        ".list[infinite]",
        ".list[-infinite:]",
        ".list[:infinite]",
        ".list[nan:]",
        ".list[1:][1:][1][:2]",
        ".list[3][1:][0]",
        ".list[4].n",
        ".list[]?.name",
        '.list[] | select(.name? == "a")',
        '.list[] | select(.name? | strings | test("^istio-"))',
        '.. | select(.name? == "d")',
        ".list[] | numbers",
        'getpath(["deep", "deeper"])',
        'paths(type == "number") as $path | getpath($path)',
        '.data | to_entries[] | select(.key == "password")',
        '.data | with_entries(select(.key == "password"))',
        ".list[].name",
        ".data[0]",
        "(.list // [])[0]",
        '(.none // "none") | .a',
        "first(.list[])",
        "limit(2; .list[])",
        ".list[] |= 1",
        ".data.password | @base64d",
        "error",
        "input",
        "inputs",
        "halt",
        "halt_error",
        "debug | .data",
        "stderr | .data",
        "input_filename",
        "$__loc__",
        ".data | keys[]",
        '"/etc/passwd" | modulemeta',
    ],
)
def test_ignored_fields_equal_those_that_jq_deletes(expression: str) -> None:
    rules = (IgnoreDifference(kind="*", expressions=(expression,)),)
    try:
        (left,) = oracle.compile(f"del({expression})").input_value(BODY).all() or [BODY]
    except ValueError:
        left = BODY

    assert with_live_values(BODY, {}, rules, find_paths) == left


def test_all_expressions_of_an_object_are_evaluated_in_one_request(jq: Jq) -> None:
    expected, live = jq.paths_for(ITEM)((".a", ".b[]?"), ({"a": 1}, {"b": [2, 3]}))

    assert expected == (("a",),)
    assert live == (("b", 0), ("b", 1))


def test_a_failing_expression_does_not_affect_the_others(jq: Jq) -> None:
    assert read_result(jq, ".data[]", ".list[].name", ".deep") == (
        ("data", "password"),
        ("data", "app.conf"),
        ("deep",),
    )


@pytest.mark.parametrize(
    "expression", ["env[]", "$ENV[]", "env | keys[]", "$ENV.PATH", "$ENV.HOME"]
)
def test_the_environment_is_out_of_reach(jq: Jq, expression: str) -> None:
    """A path that ends in a name of the environment's would tell that it is there."""
    message = f"if ([{expression} | select(. != null)] == []) then .deep else .data end"

    assert read_result(jq, message) == (("deep",),)


def test_files_are_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """jq itself reads what a user keeps in `~/.jq`, and modules."""
    (tmp_path / ".jq").write_text("def ours: .a;\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with closing(Jq()) as jq:
        error = refusal(jq, "ours")

    assert "ours/0 is not defined" in error.problem


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (".a[", "syntax error, unexpected end of file, line 1, column 3"),
        (".a) , (.b", "syntax error"),
        ("", "program not given"),
        ("foo(.a)", "foo/1 is not defined, line 1, column 1"),
        ("$nothing", "$nothing is not defined"),
        (".a # a comment", "syntax error"),
        ('import "a" as a; .a', "module not found: a"),
        ('include "a"; .a', "module not found: a"),
    ],
)
def test_an_invalid_path_is_reported_with_the_message_of_jq(
    jq: Jq, expression: str, message: str
) -> None:
    error = refusal(jq, expression)

    assert error.code == "dialect.jq.expression"
    assert error.problem.startswith(f"`{expression}` ")
    assert message in error.problem


@pytest.mark.parametrize("expression", ["map(.a)", "$__loc__", "env", "to_entries"])
def test_an_expression_that_computes_values_is_not_a_path(
    jq: Jq, expression: str, wording: RecordedWording
) -> None:
    error = refusal(jq, expression)

    assert error.code == "dialect.jq.expression"
    wording(error.problem)


@pytest.mark.parametrize(
    "expression",
    [
        ".a[]",
        ".a[0] | .b",
        '(.a // "x") | .b',
        "(.a // [])[]",
        ".. | select(.b?)",
        "if .a then .b else 1 end",
    ],
)
def test_possible_paths_are_accepted(jq: Jq, expression: str) -> None:
    jq.check(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "def f: f; f",
        "[range(1e12)]",
        "limit(1e12; repeat(.))",
        "repeat(empty)",
        "last(range(1e12))",
    ],
)
def test_an_endless_expression_is_stopped_and_the_next_one_works(expression: str) -> None:
    with closing(Jq()) as jq:
        error = refusal(jq, expression)
        paths = read_result(jq, ".deep")

    assert error.code == "dialect.jq.timeout"
    assert error.problem.startswith(f"`{expression}` ")
    assert error.problem.endswith(" 1s")
    assert paths == (("deep",),)


def test_an_expression_with_too_much_memory_is_stopped_and_the_next_one_works() -> None:
    with closing(Jq(SMALL)) as jq:
        error = refusal(jq, "def f: 1 + f; f")
        paths = read_result(jq, ".deep")

    assert error.code == "dialect.jq.memory"
    assert "64 MiB" in error.problem
    assert paths == (("deep",),)


def test_an_endless_expression_is_reported_with_its_object_and_without_values() -> None:
    expressions = (".deep", f"(stderr | {ENDLESS})", ".list")
    with closing(Jq()) as jq, pytest.raises(DialectError) as caught:
        jq.paths_for(ITEM)(expressions, (BODY, {}))

    assert caught.value.code == "dialect.jq.timeout"
    assert caught.value.problem.startswith(f"`(stderr | {ENDLESS})` ")
    assert str(caught.value.location) == "key.yaml:3"
    assert "hunter2" not in str(caught.value)


def test_results_of_unchanged_objects_are_cached() -> None:
    with closing(Jq()) as jq:
        before = read_result(jq, ".deep")

    # Its worker has ended: another request would start one that nothing ends.
    assert read_result(jq, ".deep") == before


def test_an_endless_expression_is_not_repeated() -> None:
    with closing(Jq()) as jq:
        first = refusal(jq, "def f: f; f")

    assert str(refusal(jq, "def f: f; f")) == str(first)


def test_without_jq_the_hint_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jq", None)
    with closing(Jq()) as jq:
        error = refusal(jq, ".a")

    assert error.code == "dialect.jq.missing"
    assert "`tidegate[jq]`" in error.hint
