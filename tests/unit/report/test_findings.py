"""Findings as people read them."""

from __future__ import annotations

from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.report.findings import finding_lines


def a_finding(name: str, *, sentence: str = "it is not played") -> Finding:
    return Finding(
        code="flux.unsupported",
        severity=Severity.WARNING,
        message=sentence,
        location=Location(name, 3),
        fix="leave it out",
    )


def test_what_is_said_of_several_places_is_said_once() -> None:
    findings = [a_finding("two.yaml"), a_finding("one.yaml"), a_finding("one.yaml")]

    assert [*finding_lines([*findings, a_finding("one.yaml", sentence="it is new")])] == [
        "warning[flux.unsupported]: it is not played",
        "  at one.yaml:3",
        "  at two.yaml:3",
        "  hint: leave it out",
        "warning[flux.unsupported]: it is new",
        "  at one.yaml:3",
        "  hint: leave it out",
    ]
