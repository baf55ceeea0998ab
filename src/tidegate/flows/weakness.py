"""What could not be had, in one finding: a preview without it proves less than it seems to.

A unit that lies elsewhere is assumed to be well, as everything is that others bring, and so are the
values of Secrets where nobody has given a key. What a chart or an overlay itself asks for, and what
a key was given for and does not open, is a fault: without it nothing has passed. So it is where no
unit at all could be looked into. A fault is one for every verb, also for those that prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.flows.discover.families import Member
from tidegate.flows.entering import Found
from tidegate.flows.rendering import Rendered
from tidegate.flows.rendering.outcome import SEALED_DATA
from tidegate.model.finding import Finding, Severity
from tidegate.render.sops.keys import WRONG_KEY

FAULTS = frozenset({WRONG_KEY, "render.sops.metadata"})
ELSEWHERE = frozenset({"units.opaque", "argo.set-far"})
"""Codes of what is told of units that could not be looked into, where that is no error."""


def findings_of(found: Found) -> tuple[Finding, ...]:
    """All that is said of what was found by verbs that show it, and prove nothing by it."""
    weakness = weakness_of(found.members, found.findings)
    return (*found.findings, *(one for one in weakness if one.severity is Severity.ERROR))


def weakness_of(members: Iterable[Member], findings: Iterable[Finding] = ()) -> tuple[Finding, ...]:
    """What is not known of these units, all of it counted; nothing where everything is.

    `findings`: what was found with them.
    """
    rendered = [one.rendered for one in members if isinstance(one.rendered, Rendered)]
    has_some = any(one.documents for one in rendered)
    sealed = [error for one in rendered for error in one.locked]
    objects = {one for one in sealed if one.code != SEALED_DATA}
    locked = objects or {*{one.problem: one for one in sealed}.values()}
    lacking = {lack.unknown for one in rendered for lack in one.weakened}
    far = {one for one in findings if one.code in ELSEWHERE and one.severity is Severity.WARNING}
    parts = (
        _counted(
            len(locked), "encrypted object was not opened", "encrypted objects were not opened"
        ),
        _counted(
            len(lacking), "chart or base could not be had", "charts or bases could not be had"
        ),
        _counted(len(far), "unit could not be looked into", "units could not be looked into"),
    )
    told = ", ".join(part for part in parts if part)
    if not told:
        return ()
    is_fault = bool(lacking) or any(error.code in FAULTS for error in locked)
    is_fault = is_fault or (bool(far) and not has_some)
    stands = ["placeholders stand for what is encrypted"] if locked else []
    stands += ["what could not be had is taken to be well"] if lacking or far else []
    finding = Finding(
        code="units.weakened",
        severity=Severity.ERROR if is_fault else Severity.WARNING,
        sentence=f"not all of it is known: {told}",
        why=f"{' and '.join(stands)}: it proves less than it seems to",
    )
    return (finding,)


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}" if count else ""
