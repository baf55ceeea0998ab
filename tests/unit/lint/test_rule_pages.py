"""Each rule speaks at the marked lines of its bad example, and is silent in the good one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.in_process_lint import lint_at
from tests.support.rule_pages import FOLDER, PAGES, RulePage, write_files
from tidegate.lint.registry import RULES
from tidegate.linting.run import LintOptions


def asking_of(page: RulePage) -> LintOptions:
    return LintOptions(empty_cluster="--empty-cluster" in page.text)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
async def test_a_rule_speaks_at_the_lines_that_its_bad_example_marks(
    path: Path, tmp_path: Path
) -> None:
    page = RulePage.read(path)

    report = await lint_at(write_files(tmp_path, page.bad), asking_of(page))

    matches = {
        (finding.location.name, finding.location.line) if finding.location else ("", 0)
        for finding in report.findings
        if finding.code == page.code
    }
    assert page.marked
    assert matches == page.marked, [
        (sorted_finding.code, str(sorted_finding.location), sorted_finding.message)
        for sorted_finding in report.sorted_findings
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
async def test_a_rule_is_silent_in_its_good_example(path: Path, tmp_path: Path) -> None:
    page = RulePage.read(path)

    report = await lint_at(write_files(tmp_path, page.good), asking_of(page))

    assert [finding.message for finding in report.findings if finding.code == page.code] == []
    errors = [
        f"{finding.code} {finding.message}"
        for finding in report.findings
        if finding.severity == "error"
    ]
    assert errors == []


def test_every_rule_has_a_page_with_its_title_and_severity(pytestconfig: pytest.Config) -> None:
    expected = {
        rule.id: [f"# {rule.id}: {rule.title}", "", f"Severity: {rule.severity.value} at worst."]
        for rule in RULES.values()
    }

    if pytestconfig.getoption("--golden"):
        for page in PAGES:
            body = page.read_text().splitlines(keepends=True)[3:]
            page.write_text("\n".join(expected[page.stem]) + "\n" + "".join(body))
    assert {page.stem: page.read_text().splitlines()[:3] for page in PAGES} == expected


def test_the_index_has_every_rule(pytestconfig: pytest.Config) -> None:
    file = FOLDER / "README.md"
    rows = {
        f"| [{rule.id}]({rule.id}.md) |": f" {rule.severity.value} | {rule.title} |"
        for rule in RULES.values()
    }

    if pytestconfig.getoption("--golden"):
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines):
            link = line[: line.find("|", 1) + 1]
            lines[number] = link + rows[link] if link in rows else line
        file.write_text("\n".join(lines) + "\n")
    index = file.read_text().splitlines()
    assert [link + rest for link, rest in rows.items() if link + rest not in index] == []
