"""A baseline: what was found once and is not told again, so that an old repository starts green.

A finding is known again by its code, its file and its sentence; lines may move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from tidegate.errors import FileError, Place
from tidegate.model.finding import Finding

VERSION = 1


class KnownFinding(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """What is known of some findings that are alike, and how many there are."""

    code: str
    file: str
    sentence: str
    count: int = 1


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int = VERSION
    findings: tuple[KnownFinding, ...] = ()


def write_baseline(findings: Iterable[Finding]) -> bytes:
    """The text of a baseline with these findings."""
    counted = Counter(map(_key, findings))
    known = tuple(sorted(KnownFinding(*key, count) for key, count in counted.items()))
    encoded = msgspec.json.encode(Baseline(findings=known))
    return msgspec.json.format(encoded, indent=1) + b"\n"


def read_baseline(text: bytes, name: str) -> Baseline:
    """Raises a FileError for what is none."""
    try:
        found = msgspec.json.decode(text, type=Baseline)
    except msgspec.MsgspecError as error:
        problem = f"this is no baseline: {error}"
        hint = "`--update-baseline` writes it anew"
        raise FileError("file.baseline", problem, where=Place(name), hint=hint) from None
    if found.version != VERSION:
        problem = f"this baseline has version {found.version}, and this is {VERSION}"
        hint = "`--update-baseline` writes it anew"
        raise FileError("file.baseline", problem, where=Place(name), hint=hint)
    return found


def without_known(
    findings: Iterable[Finding], baseline: Baseline
) -> tuple[list[Finding], list[Finding]]:
    """Those that are new, and those that are known."""
    left = {(one.code, one.file, one.sentence): one.count for one in baseline.findings}
    new: list[Finding] = []
    old: list[Finding] = []
    for finding in findings:
        key = _key(finding)
        if left.get(key, 0):
            left[key] -= 1
            old.append(finding)
        else:
            new.append(finding)
    return new, old


def _key(finding: Finding) -> tuple[str, str, str]:
    return (finding.code, finding.where.name if finding.where else "", finding.sentence)
