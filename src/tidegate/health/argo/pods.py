"""The health of Pods in Argo CD (gitops-engine, `pkg/health/health_pod.go`, Argo CD 3.5.6).

A Pod that runs to completion (restart policy `Never` or `OnFailure`) is usually a hook. Argo CD
does not call it Degraded while its image cannot be pulled: its sync would end before the hook.
"""

from __future__ import annotations

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    UNKNOWN,
    find_condition,
    is_hook,
    is_true,
    make_verdict,
)
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.pods import container_statuses
from tidegate.model.k8s.verdict import Verdict

IGNORE_RESTART_POLICY = "argocd.argoproj.io/ignore-restart-policy"


def judge_pod(body: JsonObject) -> Verdict:
    """Return the health of a Pod.

    Like `getCorev1PodHealth` in `pkg/health/health_pod.go` of gitops-engine (Argo CD 3.5.6).
    """
    if is_long_running(body):
        stuck = [
            status
            for status in _container_statuses(body)
            if is_failing_to_start(_waiting_state(status))
        ]
        if stuck:
            messages = [get_text(_waiting_state(status), "message") for status in stuck]
            message = ", ".join(messages) if any(messages) else _waiting_message(stuck[0])
            return make_verdict(
                body, DEGRADED, get_text(_waiting_state(stuck[0]), "reason"), message
            )
    return _judge_phase(body)


def is_long_running(body: JsonObject) -> bool:
    """Return whether the Pod is meant to run until it is deleted."""
    if get_text(body, "spec", "restartPolicy") == "Always":
        return True
    return get_text(
        body, "metadata", "annotations", IGNORE_RESTART_POLICY
    ) == "true" and not is_hook(body)


def is_failing_to_start(waiting: JsonObject) -> bool:
    """Return whether a waiting container failed: an `Err...`, `...Error` or `...BackOff` reason."""
    reason = get_text(waiting, "reason")
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff"))


def _judge_phase(body: JsonObject) -> Verdict:
    status_message = get_text(body, "status", "message")
    match get_text(body, "status", "phase"):
        case "Pending":
            return make_verdict(
                body,
                PROGRESSING,
                _waiting_reason(body, "Pending"),
                status_message or _progress_message(body),
            )
        case "Succeeded":
            return make_verdict(
                body,
                HEALTHY,
                "Succeeded",
                status_message or "all containers succeeded",
                final=True,
            )
        case "Failed":
            reason = get_text(body, "status", "reason", default="Failed")
            return make_verdict(
                body, DEGRADED, reason, status_message or _failure_message(body), final=True
            )
        case "Running" if is_long_running(body):
            return _judge_readiness(body, status_message)
        case "Running" if get_text(body, "spec", "restartPolicy") in ("OnFailure", "Never"):
            return make_verdict(
                body, PROGRESSING, "Running", status_message or "containers are running"
            )
        case _:
            return make_verdict(body, UNKNOWN, "PhaseUnknown", status_message or "unknown phase")


def _judge_readiness(body: JsonObject, status_message: str) -> Verdict:
    ready = find_condition(body, "Ready")
    if is_true(ready):
        return make_verdict(
            body, HEALTHY, "Ready", status_message or "all containers are ready", condition=ready
        )
    restarted = [
        status
        for status in _container_statuses(body)
        if get_value(status, "lastState", "terminated") is not None
    ]
    if restarted:
        default = f"container `{get_text(restarted[0], 'name')}` was restarted"
        message = status_message or _termination_message(restarted[0], "lastState") or default
        return make_verdict(body, DEGRADED, "ContainerRestarted", message, condition=ready)
    message = status_message or _progress_message(body)
    return make_verdict(body, PROGRESSING, "ContainersNotReady", message, condition=ready)


def _container_statuses(body: JsonObject) -> list[JsonObject]:
    return get_mappings(body, "status", "containerStatuses")


def _waiting_state(container: JsonObject) -> JsonObject:
    return get_mapping(container, "state", "waiting")


def _waiting_reason(body: JsonObject, default: str) -> str:
    """Return why a Pod has not started: the first failing container, else its scheduling."""
    reasons = (
        get_text(_waiting_state(status), "reason")
        for status in container_statuses(body)
        if is_failing_to_start(_waiting_state(status))
    )
    scheduler_reason = get_text(find_condition(body, "PodScheduled"), "reason")
    return next(reasons, scheduler_reason or default)


def _progress_message(body: JsonObject) -> str:
    for status in container_statuses(body):
        if get_text(_waiting_state(status), "reason"):
            return _waiting_message(status)
    scheduled = find_condition(body, "PodScheduled")
    if scheduled and not is_true(scheduled):
        return get_text(scheduled, "message") or "not scheduled yet"
    containers = _container_statuses(body)
    ready = sum(get_value(status, "ready") is True for status in containers)
    if not containers:
        return "containers are not started yet"
    return f"{ready} of {len(containers)} containers are ready"


def _waiting_message(container: JsonObject) -> str:
    waiting = _waiting_state(container)
    detail = get_text(waiting, "message")
    message = f"container `{get_text(container, 'name')}` waits: {get_text(waiting, 'reason')}"
    return f"{message}, {detail}" if detail else message


def _failure_message(body: JsonObject) -> str:
    messages = (_termination_message(status, "state") for status in container_statuses(body))
    return next((message for message in messages if message), "ended without a reason")


def _termination_message(container: JsonObject, state: str) -> str:
    """Return how a container ended. Returns "" if it succeeded or still runs."""
    terminated = get_mapping(container, state, "terminated")
    code = get_int(terminated, "exitCode")
    if get_text(terminated, "message"):
        return get_text(terminated, "message")
    if terminated.get("reason") == "OOMKilled":
        return "OOMKilled"
    return f'container "{get_text(container, "name")}" failed with exit code {code}' if code else ""
