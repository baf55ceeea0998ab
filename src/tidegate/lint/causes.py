"""One finding for each cause: findings about the same thing in several places become one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from tidegate.lint.selection import SEVERITY_RANKS
from tidegate.model.finding import Finding, Occurrence

ORDER_CODES = frozenset({"ORD004", "ORD005", "ORD006"})
"""Codes about the place of an object in the order.

The same field of a template has the same place in all units that render it.
"""


def merge_causes(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding for each cause, the most severe one, with the occurrences of all.

    Findings have the same cause if their rule says so, if they are about the same field of a file,
    which several units may render, or if they have the same message.
    """
    groups: list[list[Finding]] = []
    known: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        keys = [*_cause_keys(finding)]
        group = next((known[key] for key in keys if key in known), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(finding)
        for key in keys:
            known.setdefault(key, group)
    return tuple(_merge(group) for group in groups)


def _cause_keys(finding: Finding) -> Iterator[tuple[object, ...]]:
    location = finding.location
    is_field = location is not None and bool(location.field or location.column > 1)
    if finding.cause:
        yield finding.code, finding.cause
    if location is not None and is_field and (not finding.cause or finding.code in ORDER_CODES):
        yield finding.code, location.name, location.line, location.column
    elif not finding.cause:
        yield finding.code, finding.severity, finding.message


def _merge(group: list[Finding]) -> Finding:
    if len(group) == 1:
        return group[0]
    worst = min(group, key=lambda finding: SEVERITY_RANKS[finding.severity])
    others = (finding for finding in group if finding is not worst)
    return replace(
        worst, same_cause=tuple(Occurrence(other.message, other.location) for other in others)
    )
