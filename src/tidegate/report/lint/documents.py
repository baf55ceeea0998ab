"""Findings for programs: our own JSON, SARIF, JUnit, GitHub's lines, and Markdown."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from html import escape

from tidegate.errors import Place, foreign
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json
from tidegate.report.findings import finding_document, seen_finding
from tidegate.report.lint.report import LintReport, weakness
from tidegate.report.lint.text import summary
from tidegate.report.places import seen_text

VERSION = 1
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://github.com/tidegate/tidegate"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
MARKS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def lint_document(report: LintReport) -> dict[str, Json]:
    """Everything, as our own programs read it."""
    greenfield: Json = None
    if report.greenfield is not None:
        greenfield = {
            "complete": not any(not one.is_root for one in report.greenfield),
            "assumed": [
                {
                    "what": one.what,
                    "neededBy": [*one.needed_by],
                    "where": seen_text(one.where) or None,
                    "trustRoot": one.is_root,
                }
                for one in report.greenfield
            ],
        }
    return {
        "version": VERSION,
        "findings": [_finding(seen_finding(one)) for one in report.ordered],
        "units": report.units,
        "objects": report.objects,
        "known": report.known,
        "ignored": report.ignored,
        "unknown": [
            {"sentence": one.sentence, "where": seen_text(one.where) or None}
            for one in report.unknown
        ],
        "greenfield": greenfield,
    }


def _finding(one: Finding) -> dict[str, Json]:
    place = one.where
    return {
        **finding_document(one),
        "file": place.name if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "semantics": [*one.semantics],
        "story": [*one.story],
        "also": [str(also) for also in one.also],
        "paste": one.paste,
    }


def sarif_document(report: LintReport) -> dict[str, Json]:
    """SARIF 2.1.0. There are results even where there are none."""
    codes = sorted({one.code for one in report.findings} | report.rules.keys())
    rules: list[Json] = [_sarif_rule(code, report) for code in codes]
    numbers = {code: number for number, code in enumerate(codes)}
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "tidegate", "informationUri": HOME, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(one, numbers[one.code]) for one in report.ordered],
            }
        ],
    }


def _sarif_rule(code: str, report: LintReport) -> dict[str, Json]:
    found: dict[str, Json] = {"id": code}
    if title := report.rules.get(code):
        found["shortDescription"] = {"text": title}
        found["helpUri"] = f"{HOME}/blob/main/docs/rules/{code}.md"
    return found


def _sarif_result(found_one: Finding, number: int) -> dict[str, Json]:
    one = seen_finding(found_one)
    found: dict[str, Json] = {
        "ruleId": one.code,
        "ruleIndex": number,
        "level": LEVELS[one.severity],
        "message": {"text": _words(one)},
        "partialFingerprints": {"tidegate/v1": _fingerprint(found_one)},
    }
    if one.where is not None:
        found["locations"] = [_sarif_location(one.where)]
    if one.also:
        found["relatedLocations"] = [_sarif_location(place) for place in one.also]
    return found


def _sarif_location(place: Place) -> dict[str, Json]:
    where: dict[str, Json] = {"artifactLocation": {"uri": _uri(place.name)}}
    if place.line:
        region: dict[str, Json] = {"startLine": place.line}
        if place.column:
            region["startColumn"] = place.column
        where["region"] = region
    return {"physicalLocation": where}


def _uri(name: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - for this form alone

    return f"file://{quote(name)}" if name.startswith("/") else quote(name)


def _fingerprint(one: Finding) -> str:
    name = one.where.name if one.where else ""
    text = f"{one.code}\x00{name}\x00{one.sentence}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _words(one: Finding) -> str:
    """The sentence, what happens, and what to do, as one text."""
    lines = [foreign(one.sentence)]
    lines += [f"{number}. {foreign(step)}" for number, step in enumerate(one.story, 1)]
    if one.why and not one.story:
        lines.append(f"Why: {foreign(one.why)}")
    if one.fix:
        lines.append(f"Fix: {foreign(one.fix)}")
    return "\n".join(lines)


def junit_text(report: LintReport) -> Iterator[str]:
    """A test for each finding; one that passes where there are none. Notes do not fail."""
    findings = report.ordered
    failures = sum(one.severity is not Severity.NOTE for one in findings)
    tests = max(1, len(findings))
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="tidegate lint" tests="{tests}" failures="{failures}" errors="0">'
    yield f'  <testsuite name="tidegate lint" tests="{tests}" failures="{failures}" errors="0">'
    for one in findings:
        yield from _junit_case(seen_finding(one))
    if not findings:
        yield '    <testcase name="no findings" classname="tidegate.lint"/>'
    yield "  </testsuite>"
    yield "</testsuites>"


def _junit_case(one: Finding) -> Iterator[str]:
    place = one.where or Place("")
    spot = f"{place.name}:{place.line}" if place.line else place.name or one.code
    name = f"{one.code}: {foreign(one.sentence)}"
    yield f"    <testcase name={_attribute(name)} classname={_attribute(spot)}>"
    body = escape(_clean(f"{place}\n{_words(one)}"), quote=False)
    if one.severity is Severity.NOTE:
        yield f"      <system-out>{body}</system-out>"
    else:
        message, kind = _attribute(foreign(one.sentence)), one.severity.value
        yield f'      <failure message={message} type="{kind}">{body}</failure>'
    yield "    </testcase>"


def _attribute(text: str) -> str:
    """In quotes; a line break would be read as a space."""
    return f'"{escape(_clean(text))}"'.replace("\n", "&#10;").replace("\t", "&#9;")


def _clean(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(mark if mark.isprintable() or mark == "\n" else " " for mark in text)


def github_lines(report: LintReport) -> Iterator[str]:
    """Commands that make annotations of a workflow, as `@actions/core` writes them."""
    for one in map(seen_finding, report.ordered):
        pairs = [("title", f"{one.code}: {foreign(one.sentence)}")]
        if one.where is not None:
            pairs.append(("file", one.where.name))
            pairs += [("line", str(one.where.line))] if one.where.line else []
            pairs += [("col", str(one.where.column))] if one.where.column else []
        said = ",".join(f"{name}={_property(value)}" for name, value in pairs)
        yield f"::{COMMANDS[one.severity]} {said}::{_data(_words(one))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def markdown_lines(report: LintReport) -> Iterator[str]:
    """A comment for a pull request: a table, and what happens folded below it."""
    yield f"**tidegate lint**: {summary(report)}"
    findings = [seen_finding(one) for one in report.ordered]
    if findings:
        yield ""
        yield "| | rule | where | what |"
        yield "|---|---|---|---|"
    for one in findings:
        cells = (MARKS[one.severity], one.code, f"`{one.where}`" if one.where else "", one.sentence)
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
    for one in findings:
        if one.story or one.fix or one.paste:
            yield from _details(one)
    if report.unknown:
        yield ""
        yield f"_Not known_: {weakness(report.unknown)}."


def _details(one: Finding) -> Iterator[str]:
    yield ""
    sentence = escape(foreign(one.sentence), quote=False)
    yield f"<details><summary>{escape(one.code)}: {sentence}</summary>"
    yield ""
    yield from (f"{number}. {_cell(step)}" for number, step in enumerate(one.story, 1))
    if one.fix:
        yield ""
        yield f"Fix: {_cell(one.fix)}"
    if one.paste:
        yield ""
        yield "```"
        yield from one.paste.splitlines()
        yield "```"
    yield ""
    yield "</details>"


def _cell(text: str) -> str:
    return foreign(text).replace("|", "\\|").replace("<", "&lt;")
