"""Findings as text and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from tidegate.errors import Location, sanitize
from tidegate.model.display_paths import display_location, display_paths_in, location_text
from tidegate.model.finding import Finding, Occurrence, Severity
from tidegate.model.k8s.objects import Json

NO_LOCATION = Location("")


def is_error(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding once, errors first, then by location."""
    ranks = {severity: rank for rank, severity in enumerate(Severity)}
    return sorted(
        dict.fromkeys(findings),
        key=lambda finding: (
            ranks[finding.severity],
            finding.location or NO_LOCATION,
            finding.code,
        ),
    )


def display_finding(finding: Finding) -> Finding:
    """Return the finding with file names as the user would write them."""
    return structs.replace(
        finding,
        message=display_paths_in(finding.message),
        location=finding.location and display_location(finding.location),
        reason=display_paths_in(finding.reason),
        fix=display_paths_in(finding.fix),
        sequence=tuple(map(display_paths_in, finding.sequence)),
        other_locations=tuple(map(display_location, finding.other_locations)),
        same_cause=tuple(map(_display_occurrence, finding.same_cause)),
    )


def _display_occurrence(occurrence: Occurrence) -> Occurrence:
    location = occurrence.location and display_location(occurrence.location)
    return Occurrence(display_paths_in(occurrence.message), location)


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield each finding once, errors first; equal findings share one entry."""
    locations: dict[Finding, list[Location]] = {}
    for finding in sort_findings(findings):
        finding_locations = locations.setdefault(structs.replace(finding, location=None), [])
        finding_locations += [finding.location] if finding.location is not None else []
    for finding, finding_locations in locations.items():
        yield f"{finding.severity.value}[{finding.code}]: {_display_message(finding.message)}"
        yield from (
            f"  at {location_text(sanitize(str(location)))}" for location in finding_locations
        )
        if finding.reason:
            yield f"  why: {_display_message(finding.reason)}"
        if finding.fix:
            yield f"  hint: {_display_message(finding.fix)}"


def _display_message(message: str) -> str:
    """Return a message for display. It is shortened before file names are expanded."""
    return display_paths_in(sanitize(message))


def finding_document(finding: Finding) -> dict[str, Json]:
    """Return the finding as a JSON document."""
    finding = display_finding(finding)
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "location": str(finding.location) if finding.location else None,
        "why": finding.reason,
        "fix": finding.fix,
    }
