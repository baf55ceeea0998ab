"""What others are to provide, as Argo CD judges it: addresses, volumes, more kinds, more pods.

An Ingress whose controller never publishes an address stays Progressing for ever.
"""

from __future__ import annotations

import msgspec

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    UNKNOWN,
    breaks,
    condition_of,
    conditions_of,
    is_true,
    say,
)
from tidegate.model.k8s.json_fields import get_list, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Health, Verdict

CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
"""Where version 1 keeps what has been a part of the status since version 2."""
BAD_REASONS = {
    "AbleToScale": ("FailedGetScale", "FailedUpdateScale"),
    "ScalingActive": (
        *("FailedGetResourceMetric", "FailedGetObjectMetric", "FailedGetPodsMetric"),
        *("FailedGetExternalMetric", "FailedComputeMetricsReplicas", "InvalidSelector"),
    ),
}


def judge_service(body: JsonObject) -> Verdict:
    if get_text(body, "spec", "type") != "LoadBalancer":
        return say(body, HEALTHY, "NothingToWaitFor", "the Service needs no load balancer")
    return judge_address(body)


def judge_address(body: JsonObject) -> Verdict:
    if not get_list(body, "status", "loadBalancer", "ingress"):
        return say(body, PROGRESSING, "AddressPending", "no load balancer has given an address yet")
    given = get_mappings(body, "status", "loadBalancer", "ingress")
    addresses = [get_text(one, "ip") or get_text(one, "hostname") for one in given]
    known = ", ".join(one for one in addresses if one) or "an address"
    return say(body, HEALTHY, "AddressAssigned", f"the load balancer gave {known}")


def judge_claim(body: JsonObject) -> Verdict:
    match get_text(body, "status", "phase"):
        case "Bound":
            volume = get_text(body, "spec", "volumeName", default="a volume")
            return say(body, HEALTHY, "Bound", f"bound to {volume}")
        case "Pending":
            return say(body, PROGRESSING, "Pending", "no volume is bound to it yet")
        case "Lost":
            volume = get_text(body, "spec", "volumeName", default="the volume")
            return say(body, DEGRADED, "Lost", f"{volume} that it was bound to is gone")
        case _:
            return say(body, UNKNOWN, "PhaseUnknown", "its phase is not known")


def judge_api_service(body: JsonObject) -> Verdict:
    available = condition_of(body, "Available")
    if not available:
        return say(body, PROGRESSING, "NoStatus", "Waiting to be processed")
    health = HEALTHY if is_true(available) else PROGRESSING
    sentence = f"{get_text(available, 'reason')}: {get_text(available, 'message')}"
    default = "Available" if is_true(available) else "NotAvailable"
    reason = get_text(available, "reason", default=default)
    return say(body, health, reason, sentence, condition=available)


def judge_definition(body: JsonObject) -> Verdict:
    """A CRD; the first condition that says something bad decides."""
    if get_value(body, "metadata", "deletionTimestamp") is not None:
        return say(body, PROGRESSING, "Terminating", "CRD is terminating")
    if get_value(body, "status") is None:
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


def _trouble(one: JsonObject) -> tuple[Health, str, str] | None:
    told = get_text(one, "message")
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


def _is(condition: JsonObject, name: str, status: str) -> bool:
    return condition.get("type") == name and condition.get("status") == status


def judge_autoscaler(body: JsonObject) -> Verdict:
    return _judge_conditions(body, conditions_of(body))


def judge_old_autoscaler(body: JsonObject) -> Verdict:
    """Version 1: the conditions stand in an annotation, as JSON."""
    note = get_value(body, "metadata", "annotations", CONDITIONS)
    if not isinstance(note, str):
        return _judge_conditions(body, [])
    try:
        found = msgspec.json.decode(note, type=list[dict[str, str | None]] | None)
    except (msgspec.DecodeError, msgspec.ValidationError):
        sentence = "failed to convert conditions annotation to typed"
        return say(body, UNKNOWN, "NotUnderstood", sentence)
    # Go reads the keys of JSON in any case.
    lower = [{key.lower(): value for key, value in one.items()} for one in found or []]
    return _judge_conditions(body, [*lower])


def _judge_conditions(body: JsonObject, conditions: list[JsonObject]) -> Verdict:
    for one in conditions:
        reason = get_text(one, "reason")
        if reason in BAD_REASONS.get(get_text(one, "type"), ()):
            return say(body, DEGRADED, reason, get_text(one, "message") or reason)
    for one in conditions:
        if is_true(one) and one.get("type") in ("AbleToScale", "ScalingLimited"):
            sentence = get_text(one, "message") or "the autoscaler works"
            return say(body, HEALTHY, get_text(one, "reason", default="AbleToScale"), sentence)
    return say(body, PROGRESSING, "WaitingToAutoscale", "Waiting to Autoscale")


def judge_budget(body: JsonObject) -> Verdict:
    """A budget is bad if it cannot be computed; that it forbids every eviction is no fault."""
    verdict = say(body, PROGRESSING, "NoStatus", "Waiting for status")
    for one in conditions_of(body):
        reason = get_text(one, "reason")
        if get_value(one, "reason") is None:
            return breaks(body, "a condition without a reason")
        is_bad = one.get("status") == "False" and reason != "InsufficientPods"
        health = DEGRADED if is_bad else HEALTHY
        sentence = f"PodDisruptionBudget has {reason}"
        verdict = say(body, health, reason, sentence, condition=one)
        if is_bad:
            break
    return verdict
