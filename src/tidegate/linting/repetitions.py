"""Findings of loading and of rules about the same thing: one of them is reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.linting.lookup import DiagnosticLocator
from tidegate.model.finding import Finding
from tidegate.workspace.workspace import file_and_line

UNKNOWN_CODE, REFUSED_CODE = "schema.unknown", "schema.refused"
REPLACED_AT_LINE = {
    "argo.annotation": "ORD013",
    "flux.always-true": "ORD017",
    "ORD025": "argo.hook",
    "render.kustomize.missing": "ORD049",
}
"""Codes that are not reported if another code reports the same line."""
REPLACED_IN_FIELD = {"schema.refused": "ORD013", "preflight.invalid": "ORD013"}
"""Codes that are not reported if another code reports a part of the same field."""


def without_repetitions(findings: Iterable[Finding], locator: DiagnosticLocator) -> list[Finding]:
    """Return the findings without those that repeat another one."""
    findings = list(findings)
    lines = {(finding.code, file_and_line(finding.location)) for finding in findings}
    fields: dict[str, list[Location]] = {}
    for finding in findings:
        if finding.location is not None and finding.code in REPLACED_IN_FIELD.values():
            fields.setdefault(finding.code, []).append(finding.location)
    refused = [
        finding.location
        for finding in findings
        if finding.code == REFUSED_CODE and finding.location is not None
    ]
    return [
        finding
        for finding in findings
        if (REPLACED_AT_LINE.get(finding.code), file_and_line(finding.location)) not in lines
        and not _contains_any(finding, fields, locator)
        and not _is_misplaced(finding, refused, locator)
    ]


def _is_misplaced(
    finding: Finding, refused: Iterable[Location], locator: DiagnosticLocator
) -> bool:
    """Return whether a required field with the name of an unknown field is missing."""
    location = finding.location
    if finding.code != UNKNOWN_CODE or location is None:
        return False
    key = location.field.rpartition(".")[2]
    return any(
        other.name == location.name
        and other.field.rpartition(".")[2] == key
        and _document(locator, other) == _document(locator, location)
        for other in refused
    )


def _contains_any(
    finding: Finding, fields: Mapping[str, Iterable[Location]], locator: DiagnosticLocator
) -> bool:
    """Return whether the field of a finding contains one that the replacing code reports."""
    location = finding.location
    if location is None:
        return False
    return any(
        other.name == location.name
        and other.field.startswith(location.field)
        and _document(locator, other) == _document(locator, location)
        for other in fields.get(REPLACED_IN_FIELD.get(finding.code, ""), ())
    )


def _document(locator: DiagnosticLocator, location: Location) -> Document | None:
    return locator.files.find_document(location)
