"""What lint has found, before it is written in any form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.errors import Place
from tidegate.model.finding import Finding, Severity

RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Excerpt(msgspec.Struct, frozen=True):
    """Some lines of a file; the last of them is the one that is meant, from a column on."""

    first: int
    lines: tuple[str, ...]
    column: int


class Unknown(msgspec.Struct, frozen=True):
    """What could not be looked at."""

    sentence: str
    where: Place | None


class Assumed(msgspec.Struct, frozen=True):
    """Something that nobody in the repository brings, and who needs it.

    `is_root`: somebody must bring it by hand, such as a key.
    """

    what: str
    needed_by: tuple[str, ...]
    where: Place | None = None
    is_root: bool = False


class LintReport(msgspec.Struct, frozen=True, kw_only=True):
    """Findings, how much was looked at, and what was not.

    `known`: how many of them a baseline has. `ignored`: how many somebody does not want to hear,
    with a reason. `greenfield`: what an empty cluster lacks; None where nobody asked.
    """

    findings: tuple[Finding, ...]
    units: int = 0
    objects: int = 0
    known: int = 0
    ignored: int = 0
    unknown: tuple[Unknown, ...] = ()
    greenfield: tuple[Assumed, ...] | None = None
    excerpts: Mapping[Place, Excerpt] = msgspec.field(default_factory=dict)
    rules: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def ordered(self) -> list[Finding]:
        """What hurts most first: errors that nothing mends, then by place."""
        return sorted(self.findings, key=_pain)

    @property
    def has_errors(self) -> bool:
        """Whether something cannot work; where somebody asked, also on an empty cluster."""
        lacks = any(not one.is_root for one in self.greenfield or ())
        return lacks or any(one.severity is Severity.ERROR for one in self.findings)

    def count(self, severity: Severity) -> int:
        return sum(one.severity is severity for one in self.findings)


def _pain(finding: Finding) -> tuple[int, bool, str, int, str, str]:
    place = finding.where or Place("")
    return (
        RANKS[finding.severity],
        not finding.story,
        place.name,
        place.line,
        finding.code,
        finding.sentence,
    )


def weakness(unknown: Iterable[Unknown]) -> str:
    """How what is not known weakens what is said."""
    count = len([*unknown])
    if not count:
        return ""
    things = "one thing is" if count == 1 else f"{count} things are"
    return (
        f"{things} not known, and nothing is said of it: what it would bring counts as there,"
        " and what is wrong in it is not found"
    )
