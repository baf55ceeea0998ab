"""The rule of kstatus for Pods."""

from __future__ import annotations

from datetime import datetime

import msgspec

from tidegate.health.kstatus import fields
from tidegate.health.kstatus.fields import current, failed, in_progress
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.times import SECOND, Ms, add_duration

SCHEDULING_TIMEOUT = Ms(15 * SECOND)
"""How long after its creation an unschedulable Pod is InProgress; then it is Failed."""
NOT_SCHEDULED = "PodNotScheduled"


def judge_pod(body: JsonObject, now: Ms) -> Verdict:
    """Return the health of a Pod.

    A completed Pod is Current even if it failed: it will not change.

    Like `podConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    phase = get_text(body, "status", "phase")
    match phase:
        case "Succeeded":
            return _completed("PodSucceeded", "Pod has completed successfully")
        case "Failed":
            return _completed("PodFailed", "Pod has completed, but not successfully")
        case "Running":
            return _running(body)
        case "Pending":
            return _pending(body, now)
        case "":
            return in_progress("PodNotObserved", "Pod phase not available")
        case _:
            raise fields.UnreadableError("status.phase is not a pod phase")


def scheduling_deadline(body: JsonObject) -> Ms | None:
    """Return when an unschedulable Pod becomes Failed, or None without a valid creation time."""
    try:
        created = datetime.fromisoformat(get_text(body, "metadata", "creationTimestamp"))
    except ValueError:
        return None
    if created.tzinfo is None:
        return None
    return add_duration(Ms(int(created.timestamp() * SECOND)), SCHEDULING_TIMEOUT)


def is_unschedulable(body: JsonObject) -> bool:
    """Return whether the scheduler has marked the Pod as unschedulable."""
    return any(
        condition.type == "PodScheduled"
        and condition.status == "False"
        and condition.reason == "Unschedulable"
        for condition in fields.read_conditions(body)
    )


def _completed(reason: str, message: str) -> Verdict:
    return msgspec.structs.replace(current(reason, message), is_final=True)


def _running(body: JsonObject) -> Verdict:
    ready = fields.find_condition(body, "Ready", "True")
    if ready is not None:
        return current("PodReady", "Pod is Ready", condition=ready)
    crash_looping = _crash_looping_containers(body)
    if crash_looping:
        message = f"Containers in CrashLoop state: {','.join(crash_looping)}"
        return failed("ContainerCrashLooping", message)
    return in_progress("PodRunningNotReady", "Pod is running but is not Ready")


def _pending(body: JsonObject, now: Ms) -> Verdict:
    unscheduled = fields.find_condition(body, "PodScheduled", "False")
    if unscheduled is None or unscheduled.reason != "Unschedulable":
        return in_progress("PodPending", "Pod is in the Pending phase")
    deadline = scheduling_deadline(body)
    if deadline is not None and now < deadline:
        return in_progress(NOT_SCHEDULED, "Pod has not been scheduled", condition=unscheduled)
    return failed("PodUnschedulable", "Pod could not be scheduled", condition=unscheduled)


def _crash_looping_containers(body: JsonObject) -> list[str]:
    """Return the names of containers in a crash loop. Init containers are not considered.

    Like `getCrashLoopingContainers` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    statuses = fields.get_typed_list(body, "status", "containerStatuses")
    named = [
        (status["name"], status) for status in map(_require_mapping, statuses) if "name" in status
    ]
    reasons = [(_require_text(name), _waiting_reason(status)) for name, status in named]
    return [name for name, reason in reasons if reason == "CrashLoopBackOff"]


def _waiting_reason(status: JsonObject) -> str:
    part = status
    for name in ("state", "waiting"):
        if name not in part:
            return ""
        part = _require_mapping(part[name])
    return _require_text(part["reason"]) if "reason" in part else ""


def _require_mapping(entry: Json) -> JsonObject:
    if not isinstance(entry, dict):
        raise fields.UnreadableError("a container status has a part that is not a mapping")
    return entry


def _require_text(entry: Json) -> str:
    if not isinstance(entry, str):
        raise fields.UnreadableError("a container status has a part that is not a string")
    return entry
