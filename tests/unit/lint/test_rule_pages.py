"""Each rule speaks at the marked lines of its bad example, and is silent in the good one."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.support.in_process_lint import lint_at
from tests.support.rule_pages import FOLDER, PAGES, RulePage, write_files
from tidegate.documents import read_documents
from tidegate.lint.registry import RULES
from tidegate.lint.rule import Rule
from tidegate.lint.selection import SEVERITY_RANKS
from tidegate.linting.run import LintOptions
from tidegate.model.finding import Severity


def asking_of(page: RulePage) -> LintOptions:
    return LintOptions(empty_cluster="--empty-cluster" in page.text)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
async def test_a_rule_reports_the_marked_lines_of_its_bad_example(
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
def test_a_page_says_when_its_rule_is_silent(path: Path) -> None:
    (paragraph,) = re.findall(
        r"^\*\*(?:When it is silent:|The rule is silent)(.{40,}?)^##? ",
        path.read_text(),
        re.MULTILINE | re.DOTALL,
    )

    assert paragraph


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


def annotated_example(page: RulePage) -> dict[str, str] | None:
    """Return the bad example with the ignore annotation on each reported object.

    None if a reported document is no Kubernetes object.
    """
    files = dict(page.bad)
    for name in {name for name, _ in page.marked}:
        documents = read_documents(files[name].encode(), name)
        bodies = [json.loads(json.dumps(document.body)) for document in documents]
        starts = [document.location.line for document in documents]
        for line in sorted(line for marked, line in page.marked if marked == name):
            body = bodies[bisect_right(starts, line) - 1]
            if "kind" not in body or "metadata" not in body:
                return None
            annotations = body["metadata"].setdefault("annotations", {})
            annotations["tidegate.dev/ignore"] = f"{page.code}: accepted"
        files[name] = "\n---\n".join(map(json.dumps, bodies))
    return files


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
async def test_an_annotation_suppresses_a_finding_wherever_it_was_found(
    path: Path, tmp_path: Path
) -> None:
    page = RulePage.read(path)
    files = annotated_example(page)
    assert ("`tidegate.dev/ignore:" in page.text) == (files is not None)
    if files is None:
        return

    report = await lint_at(write_files(tmp_path, files), asking_of(page))

    assert [finding.message for finding in report.findings if finding.code == page.code] == []
    assert report.ignored_count >= 1


def literal_severities(function: FunctionType) -> set[Severity]:
    """Return the severities that a rule names, also in functions of its module that it calls."""
    pending, seen, names = [function], set[FunctionType](), set[str]()
    while pending:
        current = pending.pop()
        seen.add(current)
        used = names_in(current.__code__)
        names |= used
        called = (current.__globals__.get(name) for name in used)
        pending += [
            callee
            for callee in called
            if isinstance(callee, FunctionType)
            and callee.__module__ == function.__module__
            and callee not in seen
        ]
    return {Severity[name] for name in names if name in Severity.__members__}


def names_in(code: CodeType) -> set[str]:
    """Return the global names and attributes that code uses, nested functions included."""
    nested = [names_in(const) for const in code.co_consts if isinstance(const, CodeType)]
    return {*code.co_names}.union(*nested)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_no_rule_reports_more_than_its_severity(rule: Rule) -> None:
    assert isinstance(rule.function, FunctionType)

    assert [
        severity
        for severity in literal_severities(rule.function)
        if SEVERITY_RANKS[severity] < SEVERITY_RANKS[rule.severity]
    ] == []


def test_every_rule_has_a_page_with_its_title_and_severity(pytestconfig: pytest.Config) -> None:
    expected = {
        rule.id: [f"# {rule.id}: {rule.title}", "", f"Severity: {rule.severity.value}"]
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
