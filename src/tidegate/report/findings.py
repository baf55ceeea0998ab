"""Findings as people read them: what, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from tidegate.errors import Place, TidegateError, foreign
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json
from tidegate.report.places import seen, seen_text, seen_within

NOWHERE = Place("")


def is_error(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def as_warning(error: TidegateError) -> Finding:
    """What went wrong and did not end anything."""
    return Finding(
        code=error.code,
        severity=Severity.WARNING,
        sentence=error.problem,
        where=error.where,
        fix=error.hint,
    )


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Each once, errors first, in the order of their places."""
    ranks = {severity: rank for rank, severity in enumerate(Severity)}
    return sorted(
        dict.fromkeys(findings),
        key=lambda one: (ranks[one.severity], one.where or NOWHERE, one.code),
    )


def seen_finding(one: Finding) -> Finding:
    """As it is told: files as the user would write them."""
    return structs.replace(
        one,
        sentence=seen_within(one.sentence),
        where=one.where and seen(one.where),
        why=seen_within(one.why),
        fix=seen_within(one.fix),
        story=tuple(map(seen_within, one.story)),
        also=tuple(map(seen, one.also)),
    )


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Each once, errors first, in the order of their places; the same of several places is one."""
    places: dict[Finding, list[Place]] = {}
    for one in in_order(findings):
        same = places.setdefault(structs.replace(one, where=None), [])
        same += [one.where] if one.where is not None else []
    for one, same in places.items():
        yield f"{one.severity.value}[{one.code}]: {_said(one.sentence)}"
        yield from (f"  at {seen_text(foreign(str(where)))}" for where in same)
        if one.why:
            yield f"  why: {_said(one.why)}"
        if one.fix:
            yield f"  hint: {_said(one.fix)}"


def _said(sentence: str) -> str:
    """Short as it was written; files as the user would write them, which may be long."""
    return seen_within(foreign(sentence))


def finding_document(one: Finding) -> dict[str, Json]:
    """As programs read it."""
    one = seen_finding(one)
    return {
        "code": one.code,
        "severity": one.severity.value,
        "sentence": one.sentence,
        "where": str(one.where) if one.where else None,
        "why": one.why,
        "fix": one.fix,
    }
