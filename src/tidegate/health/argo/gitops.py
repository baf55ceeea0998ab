"""Workflow and Rollout of the Argo projects, as Argo CD judges them."""

from __future__ import annotations

import re

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    UNKNOWN,
    Body,
    breaks,
    conditions_of,
    message_of,
    reason_of,
    say,
)
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, number, part, text
from tidegate.model.verdict import Health, Verdict

WORKLOAD_GENERATION = "rollout.argoproj.io/workload-generation"
BAD_PROGRESS = ("RolloutAborted", "ProgressDeadlineExceeded")
_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*")


def judge_workflow(body: Body) -> Verdict:
    phase = text(body, "status", "phase")
    told = text(body, "status", "message")
    match phase:
        case "" | "Pending" | "Running":
            sentence = told or "the workflow has not ended yet"
            return say(body, PROGRESSING, phase or "Pending", sentence)
        case "Succeeded":
            sentence = told or "the workflow has succeeded"
            return say(body, HEALTHY, phase, sentence, final=True)
        case "Failed" | "Error":
            sentence = told or "the workflow did not succeed"
            return say(body, DEGRADED, phase, sentence, final=True)
        case _:
            return say(body, UNKNOWN, "PhaseUnknown", told or "its phase is not known")


def judge_rollout(body: Body) -> Verdict:
    if not (_is_observed(body) and _is_workload_observed(body)):
        sentence = "Waiting for rollout spec update to be observed"
        return say(body, PROGRESSING, "GenerationNotObserved", sentence)
    if part(body, "status", "phase") is not None:
        return _judge_phase(body, text(body, "status", "phase"))
    if not isinstance(part(body, "status", "conditions"), list):
        return breaks(body, "a Rollout without a phase and without conditions")
    return _judge_fields(body)


def _judge_phase(body: Body, phase: str) -> Verdict:
    """Since version 1.0 of Argo Rollouts the phase tells all."""
    told = text(body, "status", "message")
    if phase == "Paused":
        return say(body, SUSPENDED, phase, told or "the rollout is paused")
    if phase not in set(Health):
        return say(body, UNKNOWN, "PhaseUnknown", "Lua returned an invalid health status")
    return say(body, Health(phase), phase, told or _available(body))


def _available(body: Body) -> str:
    available = number(body, "status", "availableReplicas")
    return f"{available} of {number(body, 'spec', 'replicas', default=1)} replicas are available"


def _judge_fields(body: Body) -> Verdict:
    """Older versions have no phase."""
    for one in conditions_of(body):
        is_stuck = one.get("type") == "Progressing" and one.get("reason") in BAD_PROGRESS
        if one.get("type") == "InvalidSpec" or is_stuck:
            reason = reason_of(one, default="InvalidSpec")
            return say(body, DEGRADED, reason, message_of(one) or reason, condition=one)
    if listed(body, "status", "pauseConditions") or part(body, "spec", "paused") is True:
        return say(body, SUSPENDED, "Paused", "Rollout is paused")
    if part(body, "status", "currentPodHash") is None:
        sentence = "Waiting for rollout to finish: status has not been reconciled."
        return say(body, PROGRESSING, "NoStatus", sentence)
    return _judge_replicas(body)


def _judge_replicas(body: Body) -> Verdict:
    status, waiting = mapping(body, "status"), "Waiting for roll out to finish"
    updated = number(status, "updatedReplicas")
    if updated < number(body, "spec", "replicas", default=1):
        sentence = f"{waiting}: More replicas need to be updated"
        return say(body, PROGRESSING, "ReplicasNotUpdated", sentence)
    if number(status, "availableReplicas") < updated:
        sentence = f"{waiting}: updated replicas are still becoming available"
        return say(body, PROGRESSING, "ReplicasNotAvailable", sentence)
    if part(body, "spec", "strategy") is None:
        return breaks(body, "a Rollout without a strategy")
    if part(body, "spec", "strategy", "blueGreen") is not None:
        return _judge_blue_green(body)
    if part(body, "spec", "strategy", "canary") is not None:
        return _judge_canary(body)
    return say(body, HEALTHY, "Available", _available(body))


def _judge_blue_green(body: Body) -> Verdict:
    current, stable = part(body, "status", "currentPodHash"), _stable(body)
    if part(body, "status", "blueGreen", "activeSelector") != current:
        return say(body, PROGRESSING, "CutoverPending", "active service cutover pending")
    if stable not in ("", current):
        return say(body, PROGRESSING, "AnalysisRunning", "waiting for analysis to complete")
    return say(body, HEALTHY, "Available", _available(body))


def _judge_canary(body: Body) -> Verdict:
    status = mapping(body, "status")
    if number(status, "replicas") > number(status, "updatedReplicas"):
        sentence = "Waiting for roll out to finish: old replicas are pending termination"
        return say(body, PROGRESSING, "OldReplicasRemain", sentence)
    stable = _stable(body)
    if stable == "" or stable != part(status, "currentPodHash"):
        sentence = "Waiting for rollout to finish steps"
        return say(body, PROGRESSING, "StepsRemain", sentence)
    return say(body, HEALTHY, "Available", _available(body))


def _stable(body: Body) -> Json:
    """The hash of the stable ReplicaSet, in either of its two places."""
    own = part(body, "status", "stableRS")
    if own is not None:
        return own
    canary = part(body, "status", "canary")
    return "" if canary is None else part(canary, "stableRS")


def _is_observed(body: Body) -> bool:
    """Versions before 0.10 wrote a hash instead of a generation: those count as observed."""
    if part(body, "status") is None:
        return False
    seen = _amount(part(body, "status", "observedGeneration"))
    return seen is None or seen >= number(body, "metadata", "generation")


def _is_workload_observed(body: Body) -> bool:
    notes = part(body, "metadata", "annotations")
    if part(body, "spec", "workloadRef") is None or notes is None:
        return True
    wanted = _amount(part(notes, WORKLOAD_GENERATION))
    return wanted == _amount(part(body, "status", "workloadObservedGeneration"))


def _amount(value: Json) -> float | None:
    """A number, or a text that is one."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    return value if isinstance(value, int | float) else None
