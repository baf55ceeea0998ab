"""Baseline of known findings. They are not reported again, so an old repository can pass.

A finding is recognized by its code, file and message; lines may move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from tidegate.errors import FileError, Location
from tidegate.model.finding import Finding
from tidegate.model.text.lazy_regex import lazy_regex

VERSION = 2
_NUMBER_OR_PATH = lazy_regex(
    r"-[bcdfghkmt2456789]{10}\b|(?<![\w./-])-?\d+(?![\w./-])|(?:[\w.@+-]+/)*[\w.@+-]+\.(?:ya?ml|json)\b(?::\d+)*"
)


class KnownFinding(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A finding of a baseline, and how often it occurs."""

    code: str
    file: str
    message: str
    count: int = 1


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int = VERSION
    findings: tuple[KnownFinding, ...] = ()


def write_baseline(findings: Iterable[Finding]) -> bytes:
    """Return the text of a baseline with these findings."""
    counts = Counter(map(_key, findings))
    known_findings = tuple(sorted(KnownFinding(*key, count) for key, count in counts.items()))
    encoded = msgspec.json.encode(Baseline(findings=known_findings))
    return msgspec.json.format(encoded, indent=1) + b"\n"


def read_baseline(text: bytes, name: str) -> Baseline:
    """Parse a baseline. Raises FileError if it is invalid or of another version."""
    try:
        baseline = msgspec.json.decode(text, type=Baseline)
    except msgspec.MsgspecError as error:
        problem = f"not a valid baseline: {error}"
        hint = "recreate the file with `--update-baseline`"
        raise FileError("file.baseline", problem, location=Location(name), hint=hint) from None
    if baseline.version != VERSION:
        problem = f"baseline has version {baseline.version}; supported version: {VERSION}"
        hint = "recreate the file with `--update-baseline`"
        raise FileError("file.baseline", problem, location=Location(name), hint=hint)
    return baseline


def split_by_baseline(
    findings: Iterable[Finding], baseline: Baseline
) -> tuple[list[Finding], list[Finding]]:
    """Return the new findings and the known findings."""
    remaining = {
        (known_finding.code, known_finding.file, known_finding.message): known_finding.count
        for known_finding in baseline.findings
    }
    new: list[Finding] = []
    old: list[Finding] = []
    for finding in findings:
        key = _key(finding)
        if remaining.get(key, 0):
            remaining[key] -= 1
            old.append(finding)
        else:
            new.append(finding)
    return new, old


def split_by_base(
    findings: Iterable[Finding], base: Iterable[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """Return the new findings, and those that another revision has as well.

    Files may be renamed, waves renumbered, and kustomize puts hashes into names: if no finding has
    the same message, one whose message differs only in these is the same.
    """
    unmatched = list(base)
    known: list[Finding] = []
    new = list(findings)
    for key in (_key, _key_without_numbers):
        remaining: dict[tuple[str, ...], list[Finding]] = {}
        for finding in unmatched:
            remaining.setdefault(key(finding), []).append(finding)
        still_new: list[Finding] = []
        for finding in new:
            if remaining.get(key(finding)):
                remaining[key(finding)].pop()
                known.append(finding)
            else:
                still_new.append(finding)
        new, unmatched = still_new, [item for items in remaining.values() for item in items]
    return new, known


def _key_without_numbers(finding: Finding) -> tuple[str, str]:
    return (finding.code, _NUMBER_OR_PATH.sub("", finding.message))


def _key(finding: Finding) -> tuple[str, str, str]:
    return (finding.code, finding.location.name if finding.location else "", finding.message)
