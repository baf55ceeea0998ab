"""Which findings are told: rules that are chosen, ignores with a reason, how bad they must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

from tidegate.documents import Document
from tidegate.model.config import IgnoredRule
from tidegate.model.finding import Finding, Severity
from tidegate.model.patterns import late
from tidegate.model.reading import mapping

IGNORE = "tidegate.dev/ignore"
"""On an object: `ORD003: the job waits by itself`, a line or a part before `;` for each rule."""
RANKS = {severity: rank for rank, severity in enumerate(Severity)}
_PARTS = late(r"[;\n]")


class RuleChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for. With no codes to `select`, all are; a code may be a beginning."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Severity = Severity.NOTE
    levels: Mapping[str, Severity] = msgspec.field(default_factory=dict)

    def takes(self, code: str) -> bool:
        chosen = not self.select or any(map(code.startswith, self.select))
        return chosen and not any(map(code.startswith, self.ignore))

    def shows(self, finding: Finding) -> bool:
        return self.takes(finding.code) and RANKS[finding.severity] <= RANKS[self.severity]


class Ignore(msgspec.Struct, frozen=True):
    """A rule that an object asks to be spared from; without a reason it is not."""

    code: str
    reason: str


def ignores_of(document: Document) -> Iterator[Ignore]:
    """What an object's own annotation says."""
    said = mapping(document.body, "metadata", "annotations").get(IGNORE)
    for part in _PARTS.split(said) if isinstance(said, str) else ():
        codes, _, reason = part.partition(":")
        for code in codes.replace(",", " ").split():
            yield Ignore(code, reason.strip())


def is_spared(finding: Finding, entries: tuple[IgnoredRule, ...]) -> bool:
    """Whether the configuration says that a rule is not asked of a file."""
    name = finding.where.name if finding.where else ""
    return any(
        finding.code == one.rule
        and (not one.paths or any(_fits(name, pattern) for pattern in one.paths))
        for one in entries
    )


def _fits(name: str, pattern: str) -> bool:
    """A pattern is of a file, or of a directory and all that is in it."""
    return fnmatchcase(name, pattern) or name.startswith(f"{pattern.rstrip('/')}/")
