"""Pods, as Argo CD judges them.

A Pod that runs to an end (restart policy `Never` or `OnFailure`) is usually a hook. It is not
Degraded while its image cannot be pulled, or it would run after its sync has ended.
"""

from __future__ import annotations

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    UNKNOWN,
    condition_of,
    is_hook,
    is_true,
    say,
)
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Verdict

IGNORES_POLICY = "argocd.argoproj.io/ignore-restart-policy"


def judge_pod(body: JsonObject) -> Verdict:
    if lasts(body):
        stuck = [one for one in _containers(body) if is_stuck(_waiting(one))]
        if stuck:
            messages = [get_text(_waiting(one), "message") for one in stuck]
            told = ", ".join(messages) if any(messages) else _waits(stuck[0])
            return say(body, DEGRADED, get_text(_waiting(stuck[0]), "reason"), told)
    return _judge_phase(body)


def lasts(body: JsonObject) -> bool:
    """Whether the Pod is meant to run for good."""
    if get_text(body, "spec", "restartPolicy") == "Always":
        return True
    return get_text(body, "metadata", "annotations", IGNORES_POLICY) == "true" and not is_hook(body)


def is_stuck(waiting: JsonObject) -> bool:
    reason = get_text(waiting, "reason")
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff"))


def _judge_phase(body: JsonObject) -> Verdict:
    told = get_text(body, "status", "message")
    match get_text(body, "status", "phase"):
        case "Pending":
            return say(body, PROGRESSING, _hold(body, "Pending"), told or _progress(body))
        case "Succeeded":
            return say(body, HEALTHY, "Succeeded", told or "every container ended well", final=True)
        case "Failed":
            reason = get_text(body, "status", "reason", default="Failed")
            return say(body, DEGRADED, reason, told or _failure(body), final=True)
        case "Running" if lasts(body):
            return _judge_readiness(body, told)
        case "Running" if get_text(body, "spec", "restartPolicy") in ("OnFailure", "Never"):
            return say(body, PROGRESSING, "Running", told or "its containers have not ended yet")
        case _:
            return say(body, UNKNOWN, "PhaseUnknown", told or "its phase is not known")


def _judge_readiness(body: JsonObject, told: str) -> Verdict:
    ready = condition_of(body, "Ready")
    if is_true(ready):
        return say(body, HEALTHY, "Ready", told or "every container is ready", condition=ready)
    died = [
        one for one in _containers(body) if get_value(one, "lastState", "terminated") is not None
    ]
    if died:
        restarted = f"container `{get_text(died[0], 'name')}` has ended and was started again"
        sentence = told or _ended(died[0], "lastState") or restarted
        return say(body, DEGRADED, "ContainerRestarted", sentence, condition=ready)
    sentence = told or _progress(body)
    return say(body, PROGRESSING, "ContainersNotReady", sentence, condition=ready)


def _containers(body: JsonObject) -> list[JsonObject]:
    return get_mappings(body, "status", "containerStatuses")


def _with_init(body: JsonObject) -> list[JsonObject]:
    return [*get_mappings(body, "status", "initContainerStatuses"), *_containers(body)]


def _waiting(container: JsonObject) -> JsonObject:
    return get_mapping(container, "state", "waiting")


def _hold(body: JsonObject, default: str) -> str:
    """Why a Pod has not begun: the first container that is stuck, else the scheduler's reason."""
    stuck = (
        get_text(_waiting(one), "reason") for one in _with_init(body) if is_stuck(_waiting(one))
    )
    unscheduled = get_text(condition_of(body, "PodScheduled"), "reason")
    return next(stuck, unscheduled or default)


def _progress(body: JsonObject) -> str:
    for one in _with_init(body):
        if get_text(_waiting(one), "reason"):
            return _waits(one)
    scheduled = condition_of(body, "PodScheduled")
    if scheduled and not is_true(scheduled):
        return get_text(scheduled, "message") or "it is not scheduled yet"
    containers = _containers(body)
    ready = sum(get_value(one, "ready") is True for one in containers)
    if not containers:
        return "its containers have not been started yet"
    return f"{ready} of {len(containers)} containers are ready"


def _waits(container: JsonObject) -> str:
    waiting = _waiting(container)
    why = get_text(waiting, "message")
    named = f"container `{get_text(container, 'name')}` waits: {get_text(waiting, 'reason')}"
    return f"{named}, {why}" if why else named


def _failure(body: JsonObject) -> str:
    told = (_ended(one, "state") for one in _with_init(body))
    return next((one for one in told if one), "it ended without saying why")


def _ended(container: JsonObject, state: str) -> str:
    """How a container ended; nothing for one that ended well or still runs."""
    ended = get_mapping(container, state, "terminated")
    code = get_int(ended, "exitCode")
    if get_text(ended, "message"):
        return get_text(ended, "message")
    if ended.get("reason") == "OOMKilled":
        return "OOMKilled"
    return f'container "{get_text(container, "name")}" failed with exit code {code}' if code else ""
