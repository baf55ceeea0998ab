"""Selection of findings: chosen rules, ignores with a reason, and the lowest severity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

from tidegate.documents import Document
from tidegate.model.config import IgnoredRule
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.text.lazy_regex import lazy_regex

IGNORE_ANNOTATION = "tidegate.dev/ignore"
"""Annotation of an object: `ORD003: the Job retries`, one line or `;` part per rule."""
SEVERITY_RANKS = {severity: rank for rank, severity in enumerate(Severity)}
_SEPARATORS = lazy_regex(r"[;\n]")


class RuleSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that a user selects; all without `select`. A code may be a prefix."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Severity = Severity.NOTE
    severity_overrides: Mapping[str, Severity] = msgspec.field(default_factory=dict)

    def includes(self, code: str) -> bool:
        is_selected = not self.select or any(map(code.startswith, self.select))
        return is_selected and not any(map(code.startswith, self.ignore))

    def is_reported(self, finding: Finding) -> bool:
        return (
            self.includes(finding.code)
            and SEVERITY_RANKS[finding.severity] <= SEVERITY_RANKS[self.severity]
        )


class IgnoreEntry(msgspec.Struct, frozen=True):
    """A rule that an object suppresses. It has no effect without a reason."""

    code: str
    reason: str


def ignores_in(document: Document) -> Iterator[IgnoreEntry]:
    """Yield the entries of the ignore annotation of an object."""
    value = get_mapping(document.body, "metadata", "annotations").get(IGNORE_ANNOTATION)
    for part in _SEPARATORS.split(value) if isinstance(value, str) else ():
        codes, _, reason = part.partition(":")
        for code in codes.replace(",", " ").split():
            yield IgnoreEntry(code, reason.strip())


def is_ignored(finding: Finding, entries: tuple[IgnoredRule, ...]) -> bool:
    """Return whether the configuration disables the rule of a finding for its file."""
    name = finding.location.name if finding.location else ""
    return any(
        finding.code == entry.rule
        and (not entry.paths or any(_matches(name, pattern) for pattern in entry.paths))
        for entry in entries
    )


def _matches(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a file or one of its directories."""
    return fnmatchcase(name, pattern) or name.startswith(f"{pattern.rstrip('/')}/")
