"""APIService and CustomResourceDefinition: what a server is to serve beside its own kinds."""

from __future__ import annotations

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    Body,
    breaks,
    condition_of,
    conditions_of,
    is_true,
    message_of,
    reason_of,
    say,
)
from tidegate.model.reading import part, text
from tidegate.model.verdict import Health, Verdict


def judge_api_service(body: Body) -> Verdict:
    available = condition_of(body, "Available")
    if not available:
        return say(body, PROGRESSING, "NoStatus", "Waiting to be processed")
    health = HEALTHY if is_true(available) else PROGRESSING
    sentence = f"{text(available, 'reason')}: {message_of(available)}"
    reason = reason_of(available, default="Available" if is_true(available) else "NotAvailable")
    return say(body, health, reason, sentence, condition=available)


def judge_definition(body: Body) -> Verdict:
    """A CRD; the first condition that says something bad decides."""
    if part(body, "metadata", "deletionTimestamp") is not None:
        return say(body, PROGRESSING, "Terminating", "CRD is terminating")
    if part(body, "status") is None:
        return breaks(body, "a CRD without a status")
    if not conditions_of(body):
        return say(body, PROGRESSING, "NoStatus", "Status conditions not found")
    for one in conditions_of(body):
        trouble = _trouble(one)
        if trouble is not None:
            health, reason, sentence = trouble
            return say(body, health, reason, sentence, condition=one)
    established = [one for one in conditions_of(body) if _is(one, "Established", "True")]
    if not established:
        return say(body, DEGRADED, "NotEstablished", "CRD is not established")
    return say(body, HEALTHY, "Established", "CRD is healthy", condition=established[0])


def _trouble(one: Body) -> tuple[Health, str, str] | None:
    told = message_of(one)
    if _is(one, "Terminating", "True"):
        return PROGRESSING, "Terminating", f"CRD is terminating: {told}"
    if _is(one, "NamesAccepted", "False"):
        return DEGRADED, "NamesNotAccepted", f"CRD names have not been accepted: {told}"
    if _is(one, "NonStructuralSchema", "True"):
        return DEGRADED, "NonStructuralSchema", f"Schema violations found: {told}"
    is_installing = one.get("reason") == "Installing" and not is_true(one)
    if one.get("type") == "Established" and is_installing:
        return PROGRESSING, "Installing", "CRD is being installed"
    return None


def _is(condition: Body, name: str, status: str) -> bool:
    return condition.get("type") == name and condition.get("status") == status
