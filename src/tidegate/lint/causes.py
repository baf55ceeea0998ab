"""One finding for each cause: findings about the same thing in several places become one."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tidegate.lint.selection import SEVERITY_RANKS
from tidegate.model.finding import Finding, Occurrence


def merge_causes(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding for each cause, the most severe one, with the occurrences of all.

    Findings have the same cause if their rule says so, if they are about the same field of a file,
    which several units may render, or if they have the same message.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_cause_key(finding), []).append(finding)
    return tuple(_merge(group) for group in groups.values())


def _cause_key(finding: Finding) -> tuple[object, ...]:
    if finding.cause:
        return finding.code, finding.cause
    location = finding.location
    if location is not None and (location.field or location.column > 1):
        return finding.code, location.name, location.line, location.column
    return finding.code, finding.severity, finding.message


def _merge(group: list[Finding]) -> Finding:
    if len(group) == 1:
        return group[0]
    worst = min(group, key=lambda finding: SEVERITY_RANKS[finding.severity])
    others = (finding for finding in group if finding is not worst)
    return replace(
        worst, same_cause=tuple(Occurrence(other.message, other.location) for other in others)
    )
