"""Dry run of a plan: findings about objects that the cluster would refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.errors import parse_location
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Ref
from tidegate.model.rollouts.event import Event, EventType
from tidegate.report.rollout.course import RolloutProgress
from tidegate.report.rollout.evidence import Evidence

NOT_SERVED = "NotServed"
PREFLIGHT_CODES = {
    "Contents": "preflight.contents",
    "Forbidden": "preflight.forbidden",
    "Immutable": "preflight.immutable",
    "Invalid": "preflight.invalid",
    "NoNamespace": "preflight.no-namespace",
    NOT_SERVED: "preflight.not-served",
    "Shared": "preflight.shared",
}
REFUSED_CODE = "preflight.refused"
"""Code of any other refusal of a server."""


def preflight_findings(
    progress: RolloutProgress, evidence: Iterable[Evidence]
) -> tuple[Finding, ...]:
    """Return the objects that a rollout found to be refused before its first write."""
    return refusal_findings(
        progress.preflight_refusals, {item.ref: item.not_served_reason for item in evidence}
    )


def refusal_findings(
    events: Iterable[Event], not_served_reasons: Mapping[Ref, str]
) -> tuple[Finding, ...]:
    """Return a finding for each refused object.

    `not_served_reasons`: by object, why no API serves its kind.
    """
    refused = (event for event in events if event.type is EventType.OBJECT_REFUSED and event.ref)
    return tuple(
        Finding(
            code=PREFLIGHT_CODES.get(event.reason, REFUSED_CODE),
            severity=Severity.ERROR,
            message=f"{event.ref}: {event.message}",
            location=parse_location(event.location) if event.location else None,
            reason=not_served_reasons.get(event.ref, "")
            if event.ref and event.reason == NOT_SERVED
            else "",
        )
        for event in refused
    )
