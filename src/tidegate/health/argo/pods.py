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
    Body,
    condition_of,
    is_hook,
    is_true,
    say,
)
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.model.verdict import Verdict

IGNORES_POLICY = "argocd.argoproj.io/ignore-restart-policy"


def judge_pod(body: Body) -> Verdict:
    if lasts(body):
        stuck = [one for one in _containers(body) if is_stuck(_waiting(one))]
        if stuck:
            messages = [text(_waiting(one), "message") for one in stuck]
            told = ", ".join(messages) if any(messages) else _waits(stuck[0])
            return say(body, DEGRADED, text(_waiting(stuck[0]), "reason"), told)
    return _judge_phase(body)


def lasts(body: Body) -> bool:
    """Whether the Pod is meant to run for good."""
    if text(body, "spec", "restartPolicy") == "Always":
        return True
    return text(body, "metadata", "annotations", IGNORES_POLICY) == "true" and not is_hook(body)


def is_stuck(waiting: Body) -> bool:
    reason = text(waiting, "reason")
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff"))


def _judge_phase(body: Body) -> Verdict:
    told = text(body, "status", "message")
    match text(body, "status", "phase"):
        case "Pending":
            return say(body, PROGRESSING, _hold(body, "Pending"), told or _progress(body))
        case "Succeeded":
            return say(body, HEALTHY, "Succeeded", told or "every container ended well", final=True)
        case "Failed":
            reason = text(body, "status", "reason", default="Failed")
            return say(body, DEGRADED, reason, told or _failure(body), final=True)
        case "Running" if lasts(body):
            return _judge_readiness(body, told)
        case "Running" if text(body, "spec", "restartPolicy") in ("OnFailure", "Never"):
            return say(body, PROGRESSING, "Running", told or "its containers have not ended yet")
        case _:
            return say(body, UNKNOWN, "PhaseUnknown", told or "its phase is not known")


def _judge_readiness(body: Body, told: str) -> Verdict:
    ready = condition_of(body, "Ready")
    if is_true(ready):
        return say(body, HEALTHY, "Ready", told or "every container is ready", condition=ready)
    died = [one for one in _containers(body) if part(one, "lastState", "terminated") is not None]
    if died:
        restarted = f"container `{text(died[0], 'name')}` has ended and was started again"
        sentence = told or _ended(died[0], "lastState") or restarted
        return say(body, DEGRADED, "ContainerRestarted", sentence, condition=ready)
    sentence = told or _progress(body)
    return say(body, PROGRESSING, "ContainersNotReady", sentence, condition=ready)


def _containers(body: Body) -> list[Body]:
    return mappings(body, "status", "containerStatuses")


def _with_init(body: Body) -> list[Body]:
    return [*mappings(body, "status", "initContainerStatuses"), *_containers(body)]


def _waiting(container: Body) -> Body:
    return mapping(container, "state", "waiting")


def _hold(body: Body, default: str) -> str:
    """Why a Pod has not begun: the first container that is stuck, else the scheduler's reason."""
    stuck = (text(_waiting(one), "reason") for one in _with_init(body) if is_stuck(_waiting(one)))
    unscheduled = text(condition_of(body, "PodScheduled"), "reason")
    return next(stuck, unscheduled or default)


def _progress(body: Body) -> str:
    for one in _with_init(body):
        if text(_waiting(one), "reason"):
            return _waits(one)
    scheduled = condition_of(body, "PodScheduled")
    if scheduled and not is_true(scheduled):
        return text(scheduled, "message") or "it is not scheduled yet"
    containers = _containers(body)
    ready = sum(part(one, "ready") is True for one in containers)
    if not containers:
        return "its containers have not been started yet"
    return f"{ready} of {len(containers)} containers are ready"


def _waits(container: Body) -> str:
    waiting = _waiting(container)
    why = text(waiting, "message")
    named = f"container `{text(container, 'name')}` waits: {text(waiting, 'reason')}"
    return f"{named}, {why}" if why else named


def _failure(body: Body) -> str:
    told = (_ended(one, "state") for one in _with_init(body))
    return next((one for one in told if one), "it ended without saying why")


def _ended(container: Body, state: str) -> str:
    """How a container ended; nothing for one that ended well or still runs."""
    ended = mapping(container, state, "terminated")
    code = number(ended, "exitCode")
    if text(ended, "message"):
        return text(ended, "message")
    if ended.get("reason") == "OOMKilled":
        return "OOMKilled"
    return f'container "{text(container, "name")}" failed with exit code {code}' if code else ""
