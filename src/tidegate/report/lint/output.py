"""Output of `lint`: text, JSON, SARIF, JUnit, GitHub annotations, Markdown, and rule pages."""

from __future__ import annotations

import hashlib
import textwrap
from collections import Counter
from collections.abc import Iterator
from html import escape

from tidegate.errors import Location, sanitize
from tidegate.model.display import count_noun, join_limited
from tidegate.model.display_paths import location_text
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.views.coverage import Coverage
from tidegate.model.views.lint import Excerpt, LintReport
from tidegate.report.coverage import coverage_document, coverage_lines
from tidegate.report.findings import display_finding, finding_document

RED, YELLOW, BLUE, BOLD, DIM, RESET = (
    *("\033[31m", "\033[33m", "\033[34m", "\033[1m", "\033[2m", "\033[0m"),
)
SEVERITY_COLORS = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: BLUE}
SEMANTICS_NAMES = {"argocd": "Argo CD", "flux": "Flux", "tidegate": "Tidegate semantics"}
MAX_DEPENDENTS = 3
MAX_PLACES = 3
"""Maximum number of shown places of one finding; the others are only counted."""
MAX_NOTES = 5
"""Maximum number of shown notes with the same code; the others are only counted."""
DEFAULT_WIDTH = 100


def lint_lines(
    report: LintReport, *, max_width: int | None = None, use_color: bool = False
) -> list[str]:
    """Return the whole report; the last line is the summary."""
    paint = _Painter(use_color)
    lines: list[str] = []
    notes_seen: Counter[str] = Counter()
    for finding in report.sorted_findings:
        notes_seen[finding.code] += 1
        shown = display_finding(finding)
        if finding.severity is Severity.NOTE:
            if notes_seen[finding.code] <= MAX_NOTES:
                lines += _short_lines(shown, paint)
        else:
            lines += [
                *full_lines(
                    shown,
                    report.excerpts.get(finding.location) if finding.location else None,
                    use_color=use_color,
                    max_width=max_width,
                )
            ]
    lines += [
        f"note[{code}]: {note_count - MAX_NOTES} more; use `-o json` to list all"
        for code, note_count in _note_counts(report).items()
        if note_count > MAX_NOTES
    ]
    lines += coverage_lines(report.coverage)
    lines += _empty_cluster_lines(report)
    return [*lines, lint_summary(report)]


class _Painter:
    """Painter of text, without effect if colors are off."""

    def __init__(self, use_color: bool) -> None:  # noqa: FBT001 - the only option
        self._use_color = use_color

    def __call__(self, text: str, *codes: str) -> str:
        return f"{''.join(codes)}{text}{RESET}" if self._use_color else text


def _note_counts(report: LintReport) -> Counter[str]:
    return Counter(
        finding.code for finding in report.sorted_findings if finding.severity is Severity.NOTE
    )


def _title_line(finding: Finding, paint: _Painter) -> str:
    label = paint(
        f"{finding.severity.value}[{finding.code}]", BOLD, SEVERITY_COLORS[finding.severity]
    )
    return f"{label}: {sanitize(finding.message)}"


def _short_lines(finding: Finding, paint: _Painter) -> Iterator[str]:
    yield _title_line(finding, paint)
    if finding.location is not None:
        yield f"  at {sanitize(str(finding.location))}"
    if finding.same_cause:
        yield f"  also {sanitize(_occurrences_text(finding))}"


def _occurrences_text(finding: Finding) -> str:
    """Return the first other places of the same cause, and how many more there are."""
    others = [item.location for item in finding.same_cause if item.location != finding.location]
    named = (f"{location.name}:{location.line}" for location in others if location is not None)
    shown = [*dict.fromkeys(named)][: MAX_PLACES - 1]
    more = len(finding.same_cause) - len(shown)
    if not shown:
        return f"{count_noun(more, 'more time')} in the same place"
    places = f"at {' and '.join(shown)}" if not more else f"at {', '.join(shown)}"
    return f"{places} and {more} more" if more else places


def full_lines(
    finding: Finding,
    excerpt: Excerpt | None,
    *,
    use_color: bool = False,
    max_width: int | None = None,
) -> Iterator[str]:
    """Yield a finding with the lines of its file, its sequence of events and its fix."""
    paint = _Painter(use_color)
    yield from _short_lines(finding, paint)
    if excerpt is not None:
        yield from _excerpt_lines(excerpt, paint, SEVERITY_COLORS[finding.severity], max_width)
    if finding.sequence:
        names = [SEMANTICS_NAMES.get(name, name) for name in finding.semantics]
        semantics_text = f" with {' and '.join(names)}" if names else ""
        yield f"  what happens{semantics_text}:"
        for number, step in enumerate(finding.sequence, 1):
            yield from _wrapped_lines(f"    {number}. ", sanitize(step), max_width)
    for location in finding.other_locations:
        yield f"  see also {sanitize(str(location))}"
    if finding.reason and not finding.sequence:
        yield from _wrapped_lines("  why: ", sanitize(finding.reason), max_width)
    if finding.fix:
        yield from _wrapped_lines("  fix: ", sanitize(finding.fix), max_width)
    if finding.snippet:
        yield "  to paste:"
        yield from (f"    {line}" for line in finding.snippet.splitlines())
    yield ""


def _wrapped_lines(prefix: str, text: str, max_width: int | None) -> list[str]:
    indent = " " * len(prefix)
    width = max(40, min(max_width or DEFAULT_WIDTH, 120))
    return textwrap.wrap(
        text, width, initial_indent=prefix, subsequent_indent=indent, break_on_hyphens=False
    ) or [prefix.rstrip()]


def _excerpt_lines(
    excerpt: Excerpt, paint: _Painter, color: str, max_width: int | None
) -> Iterator[str]:
    width = len(str(excerpt.first_line + len(excerpt.lines) - 1))
    limit = (max_width or 160) - width - 6
    for number, line in enumerate(excerpt.lines, excerpt.first_line):
        shown = line.expandtabs(1)
        shown = "".join(character if character.isprintable() else " " for character in shown)
        gutter = paint(f"  {number:>{width}} |", DIM)
        yield f"{gutter} {shown[:limit]}".rstrip()
    last = excerpt.lines[-1]
    column = max(1, excerpt.column)
    marked_length = len(last.rstrip()) - column + 1
    caret = paint("^" * max(1, min(marked_length, limit - column)), color)
    empty_gutter = paint(f"  {'':>{width}} |", DIM)
    if column <= limit:
        yield f"{empty_gutter} {' ' * (column - 1)}{caret}"


def _empty_cluster_lines(report: LintReport) -> Iterator[str]:
    if report.assumed is None:
        return
    roots = [dependency for dependency in report.assumed if dependency.is_trust_root]
    others = [dependency for dependency in report.assumed if not dependency.is_trust_root]
    if not others:
        yield "empty cluster: this repository contains all prerequisites"
    else:
        verb = "is" if len(others) == 1 else "are"
        yield (
            f"empty cluster: {_count_text(len(others), 'prerequisite')} {verb} not in this"
            " repository"
        )
    for title, group in (("", others), ("trust roots, to be created manually", roots)):
        if title and group:
            yield f"  {title}:"
        for dependency in group:
            needed_by = join_limited(dependency.needed_by, MAX_DEPENDENTS)
            yield (
                f"  {'  ' if title else ''}{sanitize(dependency.name)}, needed by"
                f" {sanitize(needed_by)}"
            )


def lint_summary(report: LintReport) -> str:
    """Return the numbers of findings, objects and units in one line."""
    counts = [(report.count_severity(severity), severity.value) for severity in Severity]
    counts_text = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
    scope = (
        f"{_count_text(report.object_count, 'object')} of {_count_text(report.unit_count, 'unit')}"
    )
    notes = [f"{report.baseline_count} in {report.baseline_name}"] if report.baseline_count else []
    notes += [f"{report.ignored_count} suppressed"] if report.ignored_count else []
    heading = "incomplete: " if report.coverage.is_incomplete else ""
    return f"{heading}{counts_text} in {scope}{''.join(f'; {note}' for note in notes)}"


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


LINT_VERSION = 2
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
PROJECT_URL = "https://github.com/tidegate/tidegate"
SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
GITHUB_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
MARKDOWN_LABELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def lint_document(report: LintReport) -> dict[str, Json]:
    """Return the report in the JSON format of Tidegate."""
    empty_cluster: Json = None
    if report.assumed is not None:
        empty_cluster = {
            "complete": not any(not dependency.is_trust_root for dependency in report.assumed),
            "assumed": [
                {
                    "what": dependency.name,
                    "neededBy": [*dependency.needed_by],
                    "location": location_text(dependency.location) or None,
                    "trustRoot": dependency.is_trust_root,
                }
                for dependency in report.assumed
            ],
        }
    return {
        "version": LINT_VERSION,
        "findings": [lint_finding_document(finding) for finding in report.sorted_findings],
        "units": report.unit_count,
        "objects": report.object_count,
        "coverage": coverage_document(report.coverage),
        "known": report.baseline_count,
        "ignored": report.ignored_count,
        "unknown": [
            {"message": item.message, "location": location_text(item.location) or None}
            for item in report.unchecked
        ],
        "emptyCluster": empty_cluster,
    }


def lint_finding_document(original: Finding) -> dict[str, Json]:
    """Return a finding as `lint` reports it, with its place, story and related places."""
    finding = display_finding(original)
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
        "sameCause": [
            {"message": item.message, "location": str(item.location) if item.location else None}
            for item in finding.same_cause
        ],
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
                "invocations": [_sarif_invocation(report.coverage)],
                "results": [
                    _sarif_result(finding, numbers[finding.code])
                    for finding in report.sorted_findings
                ],
            }
        ],
    }


def _sarif_invocation(coverage: Coverage) -> dict[str, Json]:
    """Return whether the run looked at enough, and a notification about each gap."""
    level = "error" if coverage.is_incomplete else "warning"
    return {
        "executionSuccessful": not coverage.is_incomplete,
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": sanitize(line.strip())}}
            for line in coverage_lines(coverage)
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
    occurrences = (item.location for item in finding.same_cause if item.location)
    if related := [*finding.other_locations, *occurrences]:
        result["relatedLocations"] = [_sarif_location(location) for location in related]
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
    from urllib.parse import quote  # noqa: PLC0415 - only for SARIF

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
    """Yield a test case for each finding, or one that passes. Notes are not failures."""
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
    if lines := [*coverage_lines(report.coverage)]:
        command = "error" if report.coverage.is_incomplete else "warning"
        text = _github_data("\n".join(line.strip() for line in lines))
        yield f"::{command} title=incomplete::{text}"


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
        yield "| | rule | location | problem |"
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
    lines = [*coverage_lines(report.coverage)]
    if lines:
        yield ""
        yield from ("```", *lines, "```")


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


CODE_FENCE = "```"
CODE_INDENT = "    "
_LINK = lazy_regex(r"\[([^\]]+)\]\([^)]+\)")


def rule_page_lines(page: str) -> Iterator[str]:
    """Yield the page of a rule for a terminal, without code fences and link addresses."""
    in_code = False
    for line in page.rstrip().splitlines():
        if line.startswith(CODE_FENCE):
            in_code = not in_code
        elif in_code:
            yield f"{CODE_INDENT}{line}".rstrip()
        else:
            yield _LINK.sub(r"\1", line).replace("**", "")
