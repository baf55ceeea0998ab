"""Differences between two orders for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.model.display_paths import location_text
from tidegate.model.finding import Finding, Severity
from tidegate.model.views.order_diff import DiffReport
from tidegate.report.findings import display_finding
from tidegate.report.lint.output import full_lines
from tidegate.report.order_diff.sections import (
    DiffSection,
    diff_heading,
    order_sections,
    same_order_line,
)

INDENT = "  "


def diff_lines(report: DiffReport, *, max_width: int | None = None) -> Iterator[str]:
    """Yield the report; one line if the order is the same."""
    if is_unchanged(report):
        yield same_order_line(report)
        return
    yield f"{diff_heading(report)}; compared with {report.base}"
    yield from _error_lines(report, max_width)
    yield from _finding_lines("fixed", report.fixed_errors)
    for order in report.orders:
        sections = order_sections(order)
        if order.root and sections:
            yield ""
            yield f"root {order.root}"
        for section in sections:
            yield from _section_lines(section)
    warnings = (
        finding for finding in report.new.sorted_findings if finding.severity is Severity.WARNING
    )
    yield from _finding_lines("new warnings", warnings)
    yield from _finding_lines("not read", report.not_read)


def is_unchanged(report: DiffReport) -> bool:
    """Return whether there is nothing to report about the order."""
    return report.is_same_order and not report.new_errors and not report.fixed_errors


def _error_lines(report: DiffReport, max_width: int | None) -> Iterator[str]:
    if not report.new_errors:
        return
    yield ""
    yield "will not work any more"
    for finding in report.new_errors:
        excerpt = report.new.excerpts.get(finding.location) if finding.location else None
        *lines, _ = full_lines(display_finding(finding), excerpt, max_width=max_width)
        yield from (f"{INDENT}{line}" for line in lines)


def _finding_lines(title: str, findings: Iterable[Finding]) -> Iterator[str]:
    shown = [display_finding(finding) for finding in findings]
    if shown:
        yield ""
        yield title
    for finding in shown:
        yield f"{INDENT}{finding.severity}[{finding.code}]: {finding.message}"
        if finding.location is not None:
            yield f"{INDENT * 2}at {finding.location!s}"


def _section_lines(section: DiffSection) -> Iterator[str]:
    yield ""
    yield section.title
    for entry in section.entries:
        yield f"{INDENT}{entry.text}"
        yield from (f"{INDENT * 2}{detail}" for detail in entry.details)
        if entry.location is not None:
            yield f"{INDENT * 2}at {location_text(entry.location)}"
