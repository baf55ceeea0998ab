"""Findings in the forms of others: SARIF, JUnit, and what GitHub makes annotations of."""

from __future__ import annotations

import json
from typing import cast
from xml.etree.ElementTree import fromstring

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.schemas import Schema, json_flaws, xml_flaws
from tests.support.tidegate_runs import ROOT
from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Json
from tidegate.model.views.coverage import Coverage
from tidegate.model.views.lint import Excerpt, LintReport, UncheckedInput
from tidegate.report.lint.output import (
    github_lines,
    junit_lines,
    lint_document,
    lint_lines,
    markdown_lines,
    sarif_document,
)

DATA = ROOT / "tests" / "data" / "lint"
RECORDED = json.loads((DATA / "actions-core.json").read_text())["cases"]
STRANGE = "100% <sure> & 'quoted', \x1b[31mred\x00"
FINDINGS = (
    Finding(
        code="ORD006",
        severity=Severity.ERROR,
        message=f"deadlock: {STRANGE}",
        location=Location("a dir/web.yaml", 15, 11, "spec"),
        sequence=("first", "then"),
        fix="turn it round | or not",
        other_locations=(Location("settings.yaml", 1, 1),),
        semantics=("argocd",),
        snippet="a: |\n  b",
    ),
    Finding(code="ORD016", severity=Severity.WARNING, message="no gate", reason="last wave"),
    Finding(
        code="units.repository-assumed",
        severity=Severity.NOTE,
        message="taken",
        location=Location("there"),
    ),
)
ALL = Coverage(unit_count=2, rendered_count=2, object_count=3)
REPORT = LintReport(
    findings=FINDINGS,
    coverage=ALL,
    unit_count=2,
    object_count=3,
    rule_titles={"ORD006": "Deadlock"},
    unchecked=(UncheckedInput("x", None),),
)
CLEAN = LintReport(findings=(), coverage=ALL)


@pytest.mark.parametrize("report", [REPORT, CLEAN], ids=["findings", "clean"])
def test_sarif_is_valid_for_its_schema(report: LintReport) -> None:
    schema = cast("Schema", json.loads((DATA / "sarif-2.1.0.json").read_text()))
    document = sarif_document(report)

    assert [*json_flaws(document, schema, schema)] == []
    (run,) = cast("list[dict[str, list[Json]]]", document["runs"])
    assert len(run["results"]) == len(report.findings)


def test_the_schema_of_sarif_notices_what_is_wrong() -> None:
    schema = cast("Schema", json.loads((DATA / "sarif-2.1.0.json").read_text()))
    document = sarif_document(REPORT)
    cast("list[Schema]", document["runs"])[0]["results"] = [{"level": "terrible", "extra": 1}]

    assert len([*json_flaws(document, schema, schema)]) == 3


@pytest.mark.parametrize("report", [REPORT, CLEAN], ids=["findings", "clean"])
def test_junit_is_valid_for_its_schema(report: LintReport) -> None:
    root = fromstring("\n".join(junit_lines(report)))  # noqa: S314 - it is our own text

    assert [*xml_flaws(root, str(DATA / "junit-10.xsd"))] == []
    assert root.get("tests") == str(len([*root.iter("testcase")]))
    assert root.get("failures") == str(len([*root.iter("failure")]))


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["properties"]["title"])
def test_github_annotations_equal_those_of_its_toolkit(
    case: dict[str, dict[str, str | int] | str],
) -> None:
    properties = cast("dict[str, str | int]", case["properties"])
    code, _, message = str(properties["title"]).partition(": ")
    severities = {"error": Severity.ERROR, "warning": Severity.WARNING, "notice": Severity.NOTE}
    location = None
    if "file" in properties:
        line, column = int(properties.get("startLine", 0)), int(properties.get("startColumn", 0))
        location = Location(str(properties["file"]), line, column)
    finding = Finding(
        code=code,
        severity=severities[str(case["command"])],
        message=message,
        location=location,
    )

    (annotation,) = github_lines(LintReport(findings=(finding,), coverage=ALL))

    head = str(case["line"]).rpartition("::")[0].replace("title=x,", "title=x%3A ,")
    assert annotation.rpartition("::")[0] == head


def test_line_breaks_of_a_message_are_escaped_for_github() -> None:
    (line, *_) = github_lines(REPORT)

    assert "\n" not in line
    assert line.endswith(": turn it round | or not")
    assert "%0A1. first%0A2. then%0A" in line
    assert "100%25" in line


def test_the_first_line_of_a_text_is_what_hurts_most_and_the_last_sums_it_up(
    wording: RecordedWording,
) -> None:
    excerpt = Excerpt(13, ("spec:", "  containers:", "  - name: settings  # here"), 5)
    report = LintReport(
        findings=FINDINGS[::-1],
        coverage=ALL,
        unit_count=2,
        object_count=3,
        excerpts={Location("a dir/web.yaml", 15, 11, "spec"): excerpt},
    )

    lines = lint_lines(report)

    assert lines[0].startswith("error[ORD006]: deadlock: 100% <sure>")
    assert "\x1b" not in "".join(lines)
    at = next(number for number, line in enumerate(lines) if "15 |" in line)
    assert lines[at + 1].index("^") == lines[at].index("name:")
    wording(lines)


def test_colours_are_for_terminals() -> None:
    assert lint_lines(REPORT, use_color=True)[0].startswith("\033[1m\033[31merror[ORD006]\033[0m")


def test_many_notes_of_one_code_are_summed_up(wording: RecordedWording) -> None:
    notes = tuple(
        Finding(code="ORD026", severity=Severity.NOTE, message=f"wave {number}")
        for number in range(20)
    )

    lines = lint_lines(LintReport(findings=notes, coverage=ALL))

    assert sum(line.startswith("note[ORD026]: wave") for line in lines) == 5
    (rest,) = [line for line in lines if "15" in line]
    assert rest.startswith("note[ORD026]: ")
    wording(rest)


def test_a_comment_has_one_row_for_each_finding_and_its_story_folded() -> None:
    text = "\n".join(markdown_lines(REPORT))

    assert text.count("\n| ") == 4
    assert "&lt;sure>" in text
    assert text.count("<details>") == 1
    assert ": turn it round \\| or not" in text


def test_a_document_has_all_of_it() -> None:
    document = lint_document(REPORT)

    (first, *_) = cast("list[dict[str, Json]]", document["findings"])
    assert (first["file"], first["line"], first["column"]) == ("a dir/web.yaml", 15, 11)
    assert first["story"] == ["first", "then"]
    assert document["unknown"] == [{"message": "x", "location": None}]
