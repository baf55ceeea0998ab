"""A page of cases lists every case, and for each the tests that say they cover it.

`--golden` writes the tests into it; what a case says is written by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs" / "contributing"
ROW = re.compile(r"\| (?P<case>\d+) \| (?P<says>[^|]+) \| (?P<where>[^|]*) \|")
WHY_NOT = "Does not apply: "
"""How a row begins that has no tests."""


@dataclass(frozen=True, slots=True)
class CasePage:
    """A page, where its tests are, and the cases that it must have.

    `proven`: those that a real server bears witness to; tests that ask for `stage` do.
    """

    file: Path
    tests: Path
    stage: str
    cases: tuple[int, ...]
    proven: frozenset[int]


ARGO = CasePage(
    DOCS / "argocd-cases.md",
    HERE,
    "each_stage",
    (*range(1, 56), 59, 62, 63, 64, *range(66, 77)),
    frozenset({2, 5, 6, 13, 18, 23, 26, 31, 35, 37, 44, 46}),
)
"""Commands that need no Application, and generated Applications."""
FLUX = CasePage(
    DOCS / "flux-cases.md",
    HERE.parent / "flux",
    "each_flux",
    (*range(1, 7), 8, *range(10, 54), *range(55, 66)),
    frozenset({23, 28, 36, 38, 40, 41, 42, 43, 44, 46}),
)
"""Cases of a single rollout; the others are about the time between rollouts."""
PAGES = pytest.mark.parametrize("page", [ARGO, FLUX], ids=["argocd", "flux"])


@PAGES
def test_the_page_names_the_tests_of_each_case(pytestconfig: pytest.Config, page: CasePage) -> None:
    covered = _covered(page)
    expected = ROW.sub(
        lambda row: _row(row, covered.get(int(row["case"]), [])), page.file.read_text()
    )

    if pytestconfig.getoption("--golden"):
        page.file.write_text(expected)
    assert page.file.read_text() == expected


@PAGES
def test_the_page_lists_every_case_once_with_its_tests_or_a_reason(
    page: CasePage,
) -> None:
    rows = [(int(row["case"]), row["where"]) for row in ROW.finditer(page.file.read_text())]

    covered = _covered(page)
    assert [number for number, _ in rows] == [*page.cases]
    assert set(covered) <= set(page.cases)
    left = [(number, tests_column) for number, tests_column in rows if number not in covered]
    assert [
        (number, tests_column)
        for number, tests_column in left
        if not tests_column.startswith(WHY_NOT)
    ] == []


@PAGES
def test_important_cases_are_tested_on_a_real_server(page: CasePage) -> None:
    everywhere = {number for number, tests in _covered(page).items() if "**" in "".join(tests)}

    assert everywhere >= page.proven


def _row(row: re.Match[str], tests: list[str]) -> str:
    """A row with its tests; one without any says why, by hand."""
    tests_column = "<br>".join(tests) if tests else row["where"]
    return f"| {row['case']} | {row['says']} | {tests_column} |"


def _covered(page: CasePage) -> dict[int, list[str]]:
    """The tests of each case; those that also run on a real server in bold."""
    covered: dict[int, list[str]] = {}
    for path in sorted(page.tests.glob("test_*.py")):
        for number, test in _marked(path, page.stage):
            covered.setdefault(number, []).append(test)
    return covered


def _marked(path: Path, stage: str) -> Iterator[tuple[int, str]]:
    area = path.stem.removeprefix("test_").replace("_", " ")
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        title = node.name.removeprefix("test_").replace("_", " ")
        everywhere = any(argument.arg == stage for argument in node.args.args)
        message = f"{area}: {title}"
        for number in _numbers(node):
            yield number, f"**{message}**" if everywhere else message


def _numbers(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[int]:
    calls = (decorator for decorator in test.decorator_list if isinstance(decorator, ast.Call))
    marks = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "case")
    return [ast.literal_eval(argument) for decorator in marks for argument in decorator.args]
