"""Result of `lint`, independent of the output format."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.views.coverage import Coverage

INCOMPLETE_CODE = "units.incomplete"
SEVERITY_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Excerpt(msgspec.Struct, frozen=True):
    """Lines of a file; the last line is the reported one."""

    first_line: int
    lines: tuple[str, ...]
    column: int
    """Column at which the reported part starts."""


class UncheckedInput(msgspec.Struct, frozen=True):
    """An input that could not be checked."""

    message: str
    location: Location | None


class AssumedDependency(msgspec.Struct, frozen=True):
    """A dependency that the repository does not provide, and who needs it."""

    name: str
    needed_by: tuple[str, ...]
    location: Location | None = None
    is_trust_root: bool = False
    """Whether the dependency is created manually, such as a key."""


class LintReport(msgspec.Struct, frozen=True, kw_only=True):
    """Findings, with the numbers of checked units and objects."""

    findings: tuple[Finding, ...]
    unit_count: int = 0
    object_count: int = 0
    baseline_count: int = 0
    """Number of findings that are in the baseline."""
    baseline_name: str = "the baseline"
    """What has these findings: a file, or another revision."""
    ignored_count: int = 0
    """Number of findings that are ignored with a reason."""
    coverage: Coverage = Coverage()
    """How much of the repository the findings rest on."""
    unchecked: tuple[UncheckedInput, ...] = ()
    assumed: tuple[AssumedDependency, ...] | None = None
    """Dependencies that an empty cluster lacks; None if not requested."""
    excerpts: Mapping[Location, Excerpt] = msgspec.field(default_factory=dict)
    rule_titles: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def sorted_findings(self) -> list[Finding]:
        """Findings by severity, those with an explanation first, then by location."""
        return sorted(self.findings, key=_sort_key)

    def fails(self, minimum: Severity, *, allow_incomplete: bool = False) -> bool:
        """Return whether a finding has this severity or, if requested, a dependency is missing.

        With `allow_incomplete`, without the error that inputs could not be fetched.
        """
        has_missing = any(not dependency.is_trust_root for dependency in self.assumed or ())
        ignored = {INCOMPLETE_CODE} if allow_incomplete else set()
        return has_missing or any(
            SEVERITY_RANKS[finding.severity] <= SEVERITY_RANKS[minimum]
            and finding.code not in ignored
            for finding in self.findings
        )

    def count_severity(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)


def _sort_key(finding: Finding) -> tuple[int, bool, str, int, str, str]:
    location = finding.location or Location("")
    return (
        SEVERITY_RANKS[finding.severity],
        not finding.sequence,
        location.name,
        location.line,
        finding.code,
        finding.message,
    )
