"""Output of `lint`: text, JSON, SARIF, JUnit, GitHub annotations, Markdown, and rule pages."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

from tidegate.errors import sanitize
from tidegate.model.finding import Finding, Severity
from tidegate.report.findings import display_finding
from tidegate.report.lint.report import Excerpt, LintReport, unchecked_message

RED, YELLOW, BLUE, BOLD, DIM, RESET = (
    *("\033[31m", "\033[33m", "\033[34m", "\033[1m", "\033[2m", "\033[0m"),
)
SEVERITY_COLORS = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: BLUE}
MAX_DEPENDENTS = 3
MAX_NOTES = 5
"""Maximum number of notes of one code; the others are only counted."""
MAX_UNCHECKED = 5
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
                *_full_lines(
                    shown,
                    report.excerpts.get(finding.location) if finding.location else None,
                    paint,
                    max_width,
                )
            ]
    lines += [
        f"note[{code}]: and {note_count - MAX_NOTES} more like these; `-o json` has them all"
        for code, note_count in _note_counts(report).items()
        if note_count > MAX_NOTES
    ]
    lines += _unchecked_lines(report)
    lines += _greenfield_lines(report)
    return [*lines, lint_summary(report)]


class _Painter:
    """Colors text, if colors are on."""

    def __init__(self, use_color: bool) -> None:  # noqa: FBT001 - it is the only thing to say
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


def _full_lines(
    finding: Finding, excerpt: Excerpt | None, paint: _Painter, max_width: int | None
) -> Iterator[str]:
    yield from _short_lines(finding, paint)
    if excerpt is not None:
        yield from _excerpt_lines(excerpt, paint, SEVERITY_COLORS[finding.severity], max_width)
    if finding.sequence:
        semantics_text = f" under {' and '.join(finding.semantics)}" if finding.semantics else ""
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


def _unchecked_lines(report: LintReport) -> Iterator[str]:
    if not report.unchecked:
        return
    yield f"not known: {unchecked_message(report.unchecked)}"
    for item in report.unchecked[:MAX_UNCHECKED]:
        yield f"  {sanitize(item.message)}"
    if len(report.unchecked) > MAX_UNCHECKED:
        yield f"  and {len(report.unchecked) - MAX_UNCHECKED} more"


def _greenfield_lines(report: LintReport) -> Iterator[str]:
    if report.assumed is None:
        return
    roots = [dependency for dependency in report.assumed if dependency.is_trust_root]
    others = [dependency for dependency in report.assumed if not dependency.is_trust_root]
    if not others:
        yield "greenfield: an empty cluster can be brought up from this repository"
    else:
        things = "1 thing" if len(others) == 1 else f"{len(others)} things"
        yield f"greenfield: an empty cluster lacks {things} that nobody here brings"
    for title, group in (("", others), ("trust roots, which somebody brings by hand", roots)):
        if title and group:
            yield f"  {title}:"
        for dependency in group:
            needed_by = ", ".join(dependency.needed_by[:MAX_DEPENDENTS])
            more = (
                f" and {len(dependency.needed_by) - MAX_DEPENDENTS} more"
                if len(dependency.needed_by) > MAX_DEPENDENTS
                else ""
            )
            yield (
                f"  {'  ' if title else ''}{sanitize(dependency.name)}, needed by"
                f" {sanitize(needed_by)}{more}"
            )


def lint_summary(report: LintReport) -> str:
    """Return one line with the counts."""
    counts = [(report.count_severity(severity), severity.value) for severity in Severity]
    counts_text = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
    scope = (
        f"{_count_text(report.object_count, 'object')} of {_count_text(report.unit_count, 'unit')}"
    )
    notes = [f"{report.baseline_count} known from the baseline"] if report.baseline_count else []
    notes += [f"{report.ignored_count} ignored with a reason"] if report.ignored_count else []
    return f"{counts_text} in {scope}{''.join(f'; {note}' for note in notes)}"


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
