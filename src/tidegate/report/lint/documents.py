"""Output of `lint`: text, JSON, SARIF, JUnit, GitHub annotations, Markdown, and rule pages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from html import escape

from tidegate.errors import Location, sanitize
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json
from tidegate.report.findings import display_finding, finding_document
from tidegate.report.lint.report import LintReport, unchecked_message
from tidegate.report.lint.text import lint_summary
from tidegate.report.places import location_text

LINT_VERSION = 1
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
PROJECT_URL = "https://github.com/tidegate/tidegate"
SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
GITHUB_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
MARKDOWN_LABELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def lint_document(report: LintReport) -> dict[str, Json]:
    """Return the report in the JSON format of Tidegate."""
    greenfield: Json = None
    if report.assumed is not None:
        greenfield = {
            "complete": not any(not dependency.is_trust_root for dependency in report.assumed),
            "assumed": [
                {
                    "what": dependency.name,
                    "neededBy": [*dependency.needed_by],
                    "where": location_text(dependency.location) or None,
                    "trustRoot": dependency.is_trust_root,
                }
                for dependency in report.assumed
            ],
        }
    return {
        "version": LINT_VERSION,
        "findings": [
            _lint_finding_document(display_finding(finding)) for finding in report.sorted_findings
        ],
        "units": report.unit_count,
        "objects": report.object_count,
        "known": report.baseline_count,
        "ignored": report.ignored_count,
        "unknown": [
            {"sentence": item.message, "where": location_text(item.location) or None}
            for item in report.unchecked
        ],
        "greenfield": greenfield,
    }


def _lint_finding_document(finding: Finding) -> dict[str, Json]:
    location = finding.location
    return {
        **finding_document(finding),
        "file": location.name if location else None,
        "line": location.line if location else None,
        "column": location.column if location else None,
        "semantics": [*finding.semantics],
        "story": [*finding.sequence],
        "also": [str(related) for related in finding.other_locations],
        "paste": finding.snippet,
    }


def sarif_document(report: LintReport) -> dict[str, Json]:
    """Return the report as SARIF 2.1.0; `results` is present even if empty."""
    codes = sorted({finding.code for finding in report.findings} | report.rule_titles.keys())
    rules: list[Json] = [_sarif_rule(code, report) for code in codes]
    numbers = {code: number for number, code in enumerate(codes)}
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "tidegate", "informationUri": PROJECT_URL, "rules": rules}
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    _sarif_result(finding, numbers[finding.code])
                    for finding in report.sorted_findings
                ],
            }
        ],
    }


def _sarif_rule(code: str, report: LintReport) -> dict[str, Json]:
    rule: dict[str, Json] = {"id": code}
    if title := report.rule_titles.get(code):
        rule["shortDescription"] = {"text": title}
        rule["helpUri"] = f"{PROJECT_URL}/blob/main/docs/rules/{code}.md"
    return rule


def _sarif_result(original: Finding, number: int) -> dict[str, Json]:
    finding = display_finding(original)
    result: dict[str, Json] = {
        "ruleId": finding.code,
        "ruleIndex": number,
        "level": SARIF_LEVELS[finding.severity],
        "message": {"text": _message_text(finding)},
        "partialFingerprints": {"tidegate/v1": _fingerprint(original)},
    }
    if finding.location is not None:
        result["locations"] = [_sarif_location(finding.location)]
    if finding.other_locations:
        result["relatedLocations"] = [
            _sarif_location(location) for location in finding.other_locations
        ]
    return result


def _sarif_location(location: Location) -> dict[str, Json]:
    physical_location: dict[str, Json] = {"artifactLocation": {"uri": _uri(location.name)}}
    if location.line:
        region: dict[str, Json] = {"startLine": location.line}
        if location.column:
            region["startColumn"] = location.column
        physical_location["region"] = region
    return {"physicalLocation": physical_location}


def _uri(name: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - for this form alone

    return f"file://{quote(name)}" if name.startswith("/") else quote(name)


def _fingerprint(finding: Finding) -> str:
    name = finding.location.name if finding.location else ""
    text = f"{finding.code}\x00{name}\x00{finding.message}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _message_text(finding: Finding) -> str:
    """Return message, explanation and fix as one text."""
    lines = [sanitize(finding.message)]
    lines += [f"{number}. {sanitize(step)}" for number, step in enumerate(finding.sequence, 1)]
    if finding.reason and not finding.sequence:
        lines.append(f"Why: {sanitize(finding.reason)}")
    if finding.fix:
        lines.append(f"Fix: {sanitize(finding.fix)}")
    return "\n".join(lines)


def junit_lines(report: LintReport) -> Iterator[str]:
    """Yield a test case per finding, or a passing one if there are none. Notes do not fail."""
    findings = report.sorted_findings
    failures = sum(finding.severity is not Severity.NOTE for finding in findings)
    tests = max(1, len(findings))
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="tidegate lint" tests="{tests}" failures="{failures}" errors="0">'
    yield f'  <testsuite name="tidegate lint" tests="{tests}" failures="{failures}" errors="0">'
    for finding in findings:
        yield from _junit_case(display_finding(finding))
    if not findings:
        yield '    <testcase name="no findings" classname="tidegate.lint"/>'
    yield "  </testsuite>"
    yield "</testsuites>"


def _junit_case(finding: Finding) -> Iterator[str]:
    location = finding.location or Location("")
    class_name = (
        f"{location.name}:{location.line}" if location.line else location.name or finding.code
    )
    name = f"{finding.code}: {sanitize(finding.message)}"
    yield f"    <testcase name={_xml_attribute(name)} classname={_xml_attribute(class_name)}>"
    body = escape(_xml_text(f"{location}\n{_message_text(finding)}"), quote=False)
    if finding.severity is Severity.NOTE:
        yield f"      <system-out>{body}</system-out>"
    else:
        message, kind = _xml_attribute(sanitize(finding.message)), finding.severity.value
        yield f'      <failure message={message} type="{kind}">{body}</failure>'
    yield "    </testcase>"


def _xml_attribute(text: str) -> str:
    """Return a quoted attribute value; XML would read a line break as a space."""
    return f'"{escape(_xml_text(text))}"'.replace("\n", "&#10;").replace("\t", "&#9;")


def _xml_text(text: str) -> str:
    """Return the text without characters that XML does not allow."""
    return "".join(
        character if character.isprintable() or character == "\n" else " " for character in text
    )


def github_lines(report: LintReport) -> Iterator[str]:
    """Yield workflow commands for annotations, as `@actions/core` writes them."""
    for finding in map(display_finding, report.sorted_findings):
        pairs = [("title", f"{finding.code}: {sanitize(finding.message)}")]
        if finding.location is not None:
            pairs.append(("file", finding.location.name))
            pairs += [("line", str(finding.location.line))] if finding.location.line else []
            pairs += [("col", str(finding.location.column))] if finding.location.column else []
        properties = ",".join(f"{name}={_github_property(value)}" for name, value in pairs)
        yield (
            f"::{GITHUB_COMMANDS[finding.severity]}"
            f" {properties}::{_github_data(_message_text(finding))}"
        )


def _github_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _github_property(text: str) -> str:
    return _github_data(text).replace(":", "%3A").replace(",", "%2C")


def markdown_lines(report: LintReport) -> Iterator[str]:
    """Yield a comment for a pull request: a table, and details folded below it."""
    yield f"**tidegate lint**: {lint_summary(report)}"
    findings = [display_finding(finding) for finding in report.sorted_findings]
    if findings:
        yield ""
        yield "| | rule | where | what |"
        yield "|---|---|---|---|"
    for finding in findings:
        cells = (
            MARKDOWN_LABELS[finding.severity],
            finding.code,
            f"`{finding.location}`" if finding.location else "",
            finding.message,
        )
        yield f"| {' | '.join(_markdown_cell(cell) for cell in cells)} |"
    for finding in findings:
        if finding.sequence or finding.fix or finding.snippet:
            yield from _markdown_details(finding)
    if report.unchecked:
        yield ""
        yield f"_Not known_: {unchecked_message(report.unchecked)}."


def _markdown_details(finding: Finding) -> Iterator[str]:
    yield ""
    message = escape(sanitize(finding.message), quote=False)
    yield f"<details><summary>{escape(finding.code)}: {message}</summary>"
    yield ""
    yield from (
        f"{number}. {_markdown_cell(step)}" for number, step in enumerate(finding.sequence, 1)
    )
    if finding.fix:
        yield ""
        yield f"Fix: {_markdown_cell(finding.fix)}"
    if finding.snippet:
        yield ""
        yield "```"
        yield from finding.snippet.splitlines()
        yield "```"
    yield ""
    yield "</details>"


def _markdown_cell(text: str) -> str:
    return sanitize(text).replace("|", "\\|").replace("<", "&lt;")
