"""Required fields that several units leave out, because something adds them later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import structs

from tidegate.model.finding import Finding, Severity
from tidegate.workspace.discovery.unit_tree import RenderedUnit

REQUIRED_CODE = "flux.required"
MIN_UNITS = 3
"""Minimum number of units that leave out a field as a convention."""


def soften_left_out_fields(
    findings: Iterable[Finding], members: Iterable[RenderedUnit]
) -> Iterator[Finding]:
    """Yield the findings; a required field that several units leave out is a note.

    Only units in files that no unit of the repository deploys count. What deploys them elsewhere,
    such as an overlay that is not read, has to patch the field in.
    """
    findings = tuple(findings)
    files = {
        member.unit.location.name
        for member in members
        if member.unit.location is not None
        and (member.unit.parent is None or not member.unit.parent.kind)
    }
    counts = Counter(field for finding in findings if (field := _left_out_field(finding, files)))
    for finding in findings:
        field = _left_out_field(finding, files)
        if counts[field] < MIN_UNITS:
            yield finding
            continue
        yield structs.replace(
            finding,
            severity=Severity.NOTE,
            reason=f"{counts[field]} units that no other unit deploys omit the field; another tool"
            " probably adds it",
            cause=f"{REQUIRED_CODE} {field}",
        )


def _left_out_field(finding: Finding, files: set[str]) -> str:
    """Return the required field that a unit of these files leaves out; empty for others."""
    location = finding.location
    if finding.code != REQUIRED_CODE or location is None or location.name not in files:
        return ""
    return location.field
