"""What a cluster would refuse, as findings: each fault once, at its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.errors import parse_place
from tidegate.model.event import Event, Told
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Ref
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.evidence import Evidence

NOT_SERVED = "NotServed"
CODES = {
    "Contents": "preflight.contents",
    "Forbidden": "preflight.forbidden",
    "Immutable": "preflight.immutable",
    "Invalid": "preflight.invalid",
    "NoNamespace": "preflight.no-namespace",
    NOT_SERVED: "preflight.not-served",
    "Shared": "preflight.shared",
}
REFUSED = "preflight.refused"
"""Whatever else a server says no for."""


def faults_of_rollout(course: Course, evidence: Iterable[Evidence]) -> tuple[Finding, ...]:
    """What of a plan the cluster would not take, as a rollout found before anything was done."""
    return refusal_findings(course.faults, {one.ref: one.unserved for one in evidence})


def refusal_findings(events: Iterable[Event], unserved: Mapping[Ref, str]) -> tuple[Finding, ...]:
    """One for each fault; `unserved`: by object, why nobody serves its kind."""
    refused = (event for event in events if event.told is Told.OBJECT_REFUSED and event.ref)
    return tuple(
        Finding(
            code=CODES.get(event.reason, REFUSED),
            severity=Severity.ERROR,
            sentence=f"{event.ref}: {event.sentence}",
            where=parse_place(event.where) if event.where else None,
            why=unserved.get(event.ref, "") if event.ref and event.reason == NOT_SERVED else "",
        )
        for event in refused
    )
