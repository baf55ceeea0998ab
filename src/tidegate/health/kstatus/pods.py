"""What kstatus asks of a pod."""

from __future__ import annotations

from datetime import datetime

import msgspec

from tidegate.health.kstatus import fields
from tidegate.health.kstatus.fields import current, failed, in_progress
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.times import SECOND, Ms, add_duration

SCHEDULE_WINDOW = Ms(15 * SECOND)
"""For so long after its creation a pod without a place is not scheduled yet; then it failed."""
NOT_SCHEDULED = "PodNotScheduled"


def judge_pod(body: JsonObject, now: Ms) -> Verdict:
    """A pod that has come to its end is current, even if it failed: nothing will change."""
    phase = get_text(body, "status", "phase")
    match phase:
        case "Succeeded":
            return _ended("PodSucceeded", "Pod has completed successfully")
        case "Failed":
            return _ended("PodFailed", "Pod has completed, but not successfully")
        case "Running":
            return _running(body)
        case "Pending":
            return _pending(body, now)
        case "":
            return in_progress("PodNotObserved", "Pod phase not available")
        case _:
            raise fields.UnreadableError("status.phase is no phase of a pod")


def schedule_limit(body: JsonObject) -> Ms | None:
    """When a pod without a place begins to count as failed; None where it has no creation time."""
    try:
        stamp = datetime.fromisoformat(get_text(body, "metadata", "creationTimestamp"))
    except ValueError:
        return None
    if stamp.tzinfo is None:
        return None
    return add_duration(Ms(int(stamp.timestamp() * SECOND)), SCHEDULE_WINDOW)


def is_unschedulable(body: JsonObject) -> bool:
    """The scheduler says so. An autoscaler may yet find it a place."""
    return any(
        condition.name == "PodScheduled"
        and condition.status == "False"
        and condition.reason == "Unschedulable"
        for condition in fields.conditions_of(body)
    )


def _ended(reason: str, sentence: str) -> Verdict:
    return msgspec.structs.replace(current(reason, sentence), is_final=True)


def _running(body: JsonObject) -> Verdict:
    ready = fields.condition_with(body, "Ready", "True")
    if ready is not None:
        return current("PodReady", "Pod is Ready", by=ready)
    looping = _crash_looping(body)
    if looping:
        sentence = f"Containers in CrashLoop state: {','.join(looping)}"
        return failed("ContainerCrashLooping", sentence)
    return in_progress("PodRunningNotReady", "Pod is running but is not Ready")


def _pending(body: JsonObject, now: Ms) -> Verdict:
    unscheduled = fields.condition_with(body, "PodScheduled", "False")
    if unscheduled is None or unscheduled.reason != "Unschedulable":
        return in_progress("PodPending", "Pod is in the Pending phase")
    limit = schedule_limit(body)
    if limit is not None and now < limit:
        return in_progress(NOT_SCHEDULED, "Pod has not been scheduled", by=unscheduled)
    return failed("PodUnschedulable", "Pod could not be scheduled", by=unscheduled)


def _crash_looping(body: JsonObject) -> list[str]:
    """Names of containers that wait in a crash loop. Init containers are not asked."""
    statuses = fields.stated_list(body, "status", "containerStatuses")
    named = [(one["name"], one) for one in map(_mapping, statuses) if "name" in one]
    reasons = [(_string(name), _waiting_reason(one)) for name, one in named]
    return [name for name, reason in reasons if reason == "CrashLoopBackOff"]


def _waiting_reason(status: JsonObject) -> str:
    found = status
    for name in ("state", "waiting"):
        if name not in found:
            return ""
        found = _mapping(found[name])
    return _string(found["reason"]) if "reason" in found else ""


def _mapping(entry: Json) -> JsonObject:
    if not isinstance(entry, dict):
        raise fields.UnreadableError("a container status has a part that is not a mapping")
    return entry


def _string(entry: Json) -> str:
    if not isinstance(entry, str):
        raise fields.UnreadableError("a container status has a part that is not a string")
    return entry
