"""Findings about objects that a cluster rejects before the first write of a rollout."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from tidegate.errors import Location, parse_location
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Ref
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.evidence import Evidence
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.schema.custom_kinds import can_be_custom
from tidegate.schema.custom_resources import UNKNOWN_FIELD

NO_NAMESPACE = "NoNamespace"
NOT_SERVED = "NotServed"
PREFLIGHT_CODES = {
    "Contents": "preflight.contents",
    "Forbidden": "preflight.forbidden",
    "Immutable": "preflight.immutable",
    "Invalid": "preflight.invalid",
    NO_NAMESPACE: "preflight.no-namespace",
    NOT_SERVED: "preflight.not-served",
    "Shared": "preflight.shared",
}
DUPLICATE_ENTRIES = "duplicate entries for key"
REFUSED_CODE = "preflight.refused"
"""Code of any other refusal of a server."""


def preflight_findings(
    progress: RolloutProgress, evidence: Iterable[Evidence]
) -> tuple[Finding, ...]:
    """Return the objects that the cluster rejected before the first write of a rollout."""
    return refusal_findings(
        progress.preflight_refusals, {item.ref: item.not_served_reason for item in evidence}
    )


def refusal_findings(
    events: Iterable[Event], not_served_reasons: Mapping[Ref, str]
) -> tuple[Finding, ...]:
    """Return a finding for each rejected field, or for the whole object.

    `not_served_reasons`: by object, why no API serves its kind.
    """
    refused = _without_defaults(
        event for event in events if event.type is EventType.OBJECT_REFUSED and event.ref
    )
    return tuple(
        Finding(
            code=PREFLIGHT_CODES.get(event.reason, REFUSED_CODE),
            severity=Severity.ERROR,
            message=f"{event.ref}: {event.message}",
            location=(location := parse_location(event.location) if event.location else None),
            cause=_cause(event, location),
            reason=not_served_reasons.get(event.ref, "")
            if event.ref and event.reason == NOT_SERVED
            else "",
        )
        for event in refused
    )


def _without_defaults(events: Iterable[Event]) -> Iterable[Event]:
    """Return the events without those about a default that repeats another field of its object.

    Kubernetes 1.36 sets `targetPort` of a Service to `port`, and reports an invalid number for both
    (pkg/apis/core/v1/defaults.go, SetDefaults_Service).
    """
    causes = {
        (event.ref, event.location, event.message.removeprefix(event.field)): event
        for event in reversed(tuple(events))
    }
    return reversed(causes.values())


def _cause(event: Event, location: Location | None) -> str:
    """Return what objects in the files of one directory have in common that lack the same."""
    if event.ref is None or location is None or not event.message:
        return ""
    folder = posixpath.dirname(location.name)
    field, _, problem = event.message.rpartition(": ")
    if problem == UNKNOWN_FIELD or problem.startswith(DUPLICATE_ENTRIES):
        # Fields with one mistake, in a file that several units may render.
        return f"{location.name} {event.ref.kind.name}: {problem.partition(' [')[0]}"
    return f"{folder} {event.ref.kind.name}: {field}: {problem}"


def is_missing_dependency(event: Event) -> bool:
    """Return whether only a namespace or an operator of the object is missing."""
    is_custom = event.ref is not None and can_be_custom(event.ref.kind)
    return event.reason == NO_NAMESPACE or (event.reason == NOT_SERVED and is_custom)
