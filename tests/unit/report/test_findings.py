"""Findings as people read them."""

from __future__ import annotations

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.report.findings import finding_lines


def a_finding(name: str, *, message: str = "old") -> Finding:
    return Finding(
        code="flux.unsupported",
        severity=Severity.WARNING,
        message=message,
        location=Location(name, 3),
        fix="omit",
    )


def test_a_finding_at_several_places_is_printed_once(wording: RecordedWording) -> None:
    findings = [a_finding("two.yaml"), a_finding("one.yaml"), a_finding("one.yaml")]

    wording(finding_lines([*findings, a_finding("one.yaml", message="new")]))
