"""HorizontalPodAutoscaler and PodDisruptionBudget, as Argo CD judges them."""

from __future__ import annotations

import msgspec

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    UNKNOWN,
    Body,
    breaks,
    conditions_of,
    is_true,
    message_of,
    reason_of,
    say,
)
from tidegate.model.reading import part, text
from tidegate.model.verdict import Verdict

CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
"""Where version 1 keeps what has been a part of the status since version 2."""

BAD_REASONS = {
    "AbleToScale": frozenset({"FailedGetScale", "FailedUpdateScale"}),
    "ScalingActive": frozenset(
        {
            "FailedGetResourceMetric",
            "FailedGetObjectMetric",
            "FailedGetPodsMetric",
            "FailedGetExternalMetric",
            "FailedComputeMetricsReplicas",
            "InvalidSelector",
        }
    ),
}


def judge_autoscaler(body: Body) -> Verdict:
    return _judge_conditions(body, conditions_of(body))


def judge_old_autoscaler(body: Body) -> Verdict:
    """Version 1: the conditions stand in an annotation, as JSON."""
    note = part(body, "metadata", "annotations", CONDITIONS)
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


def _judge_conditions(body: Body, conditions: list[Body]) -> Verdict:
    for one in conditions:
        reason = text(one, "reason")
        if reason in BAD_REASONS.get(text(one, "type"), ()):
            return say(body, DEGRADED, reason, message_of(one) or reason)
    for one in conditions:
        if is_true(one) and one.get("type") in ("AbleToScale", "ScalingLimited"):
            sentence = message_of(one) or "the autoscaler works"
            return say(body, HEALTHY, reason_of(one, default="AbleToScale"), sentence)
    return say(body, PROGRESSING, "WaitingToAutoscale", "Waiting to Autoscale")


def judge_budget(body: Body) -> Verdict:
    """A budget is bad if it cannot be computed; that it forbids every eviction is no fault."""
    verdict = say(body, PROGRESSING, "NoStatus", "Waiting for status")
    for one in conditions_of(body):
        reason = text(one, "reason")
        if part(one, "reason") is None:
            return breaks(body, "a condition without a reason")
        is_bad = one.get("status") == "False" and reason != "InsufficientPods"
        health = DEGRADED if is_bad else HEALTHY
        sentence = f"PodDisruptionBudget has {reason}"
        verdict = say(body, health, reason, sentence, condition=one)
        if is_bad:
            break
    return verdict
