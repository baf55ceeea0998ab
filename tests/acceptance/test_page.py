"""The page of cases lists every case, and for each the tests that say they cover it.

`--golden` writes the tests into it; what a case says is written by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "argocd-cases.md"
ROW = re.compile(r"\| (?P<case>\d+) \| (?P<says>[^|]+) \| (?P<where>[^|]*) \|")
CASES = [*range(1, 56), 59, 63, 64, *range(67, 77)]
"""Those that can be told of without an Application, and what sets generate."""
PROVEN = {2, 5, 6, 13, 18, 23, 26, 31, 35, 37, 44, 46}
"""Those that a real server bears witness to: order, gates, hooks and deletions."""
WHY_NOT = "Does not apply: "
"""How a row begins that has no tests."""


def test_the_page_names_the_tests_of_each_case(pytestconfig: pytest.Config) -> None:
    covered = _covered()
    page = PAGE.read_text()
    wanted = ROW.sub(lambda row: _row(row, covered.get(int(row["case"]), [])), page)

    if pytestconfig.getoption("--golden"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted


def test_the_page_has_every_case_once_and_says_where_it_is_checked_or_why_not() -> None:
    rows = [(int(row["case"]), row["where"]) for row in ROW.finditer(PAGE.read_text())]

    covered = _covered()
    assert [number for number, _ in rows] == CASES
    assert set(covered) <= set(CASES)
    left = [(number, where) for number, where in rows if number not in covered]
    assert [(number, where) for number, where in left if not where.startswith(WHY_NOT)] == []


def test_the_cases_that_matter_most_are_proven_on_a_real_server() -> None:
    everywhere = {number for number, tests in _covered().items() if "**" in "".join(tests)}

    assert everywhere >= PROVEN


def _row(row: re.Match[str], tests: list[str]) -> str:
    """A row with its tests; one without any says why, by hand."""
    where = "<br>".join(tests) if tests else row["where"]
    return f"| {row['case']} | {row['says']} | {where} |"


def _covered() -> dict[int, list[str]]:
    """The tests of each case; those that also run on a real server in bold."""
    covered: dict[int, list[str]] = {}
    for path in sorted(HERE.glob("test_*.py")):
        for number, test in _marked(path):
            covered.setdefault(number, []).append(test)
    return covered


def _marked(path: Path) -> Iterator[tuple[int, str]]:
    area = path.stem.removeprefix("test_").replace("_", " ")
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        sentence = node.name.removeprefix("test_").replace("_", " ")
        everywhere = any(argument.arg == "each_stage" for argument in node.args.args)
        told = f"{area}: {sentence}"
        for number in _numbers(node):
            yield number, f"**{told}**" if everywhere else told


def _numbers(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[int]:
    calls = (mark for mark in test.decorator_list if isinstance(mark, ast.Call))
    marks = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "case")
    return [ast.literal_eval(argument) for mark in marks for argument in mark.args]
