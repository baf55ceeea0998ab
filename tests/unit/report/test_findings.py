"""Findings as people read them."""

from __future__ import annotations

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


def test_a_finding_at_several_places_is_printed_once() -> None:
    findings = [a_finding("two.yaml"), a_finding("one.yaml"), a_finding("one.yaml")]

    assert [*finding_lines([*findings, a_finding("one.yaml", message="new")])] == [
        "warning[flux.unsupported]: old",
        "  at one.yaml:3",
        "  at two.yaml:3",
        "  hint: omit",
        "warning[flux.unsupported]: new",
        "  at one.yaml:3",
        "  hint: omit",
    ]
