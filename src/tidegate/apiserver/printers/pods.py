"""Columns of Pods: ready containers, state and restarts.

Like `printPod` in `pkg/printers/internalversion/printers.go` of Kubernetes 1.36.4.
"""

from __future__ import annotations

import msgspec

from tidegate.apiserver.printers.cells import (
    AGE,
    NAME,
    NONE,
    TableColumn,
    human_duration,
    is_condition_true,
    parse_time,
)
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms

TERMINAL_PHASES = ("Succeeded", "Failed")


class _PodSummary(msgspec.Struct):
    """Counts over the containers of a pod."""

    reason: str
    """The text of the column STATUS."""
    ready: int = 0
    """Number of ready containers."""
    restarts: int = 0
    """Number of restarts."""
    restart_times: list[Ms] = msgspec.field(default_factory=list)
    """Times of the last restart of each container."""

    def add_restarts(self, status: JsonObject) -> None:
        self.restarts += get_int(status, "restartCount")
        if finished_at := get_value(status, "lastState", "terminated", "finishedAt"):
            self.restart_times.append(parse_time(finished_at))


def _summarize(pod: JsonObject) -> _PodSummary:
    phase = get_text(pod, "status", "phase")
    reason = get_text(pod, "status", "reason") or phase
    scheduled_conditions = [
        condition
        for condition in get_mappings(pod, "status", "conditions")
        if get_text(condition, "type") == "PodScheduled"
    ]
    if any(
        get_text(condition, "reason") == "SchedulingGated" for condition in scheduled_conditions
    ):
        reason = "SchedulingGated"
    summary, sidecars = _PodSummary(reason), _PodSummary(reason)
    if not _check_init_containers(pod, summary, sidecars) or is_condition_true(pod, "Initialized"):
        sidecars.ready, sidecars.reason = summary.ready, summary.reason
        summary = sidecars
        _check_containers(pod, summary)
    if get_value(pod, "metadata", "deletionTimestamp"):
        if get_text(pod, "status", "reason") == "NodeLost":
            summary.reason = "Unknown"
        elif phase not in TERMINAL_PHASES:
            summary.reason = "Terminating"
    return summary


def _check_init_containers(pod: JsonObject, summary: _PodSummary, sidecars: _PodSummary) -> bool:
    """Check the init containers. Return whether one of them has not finished."""
    init_containers = {
        get_text(container, "name"): container
        for container in get_mappings(pod, "spec", "initContainers")
    }
    for index, status in enumerate(get_mappings(pod, "status", "initContainerStatuses")):
        is_sidecar = (
            get_text(init_containers.get(get_text(status, "name")), "restartPolicy") == "Always"
        )
        summary.add_restarts(status)
        if is_sidecar:
            sidecars.add_restarts(status)
        terminated, waiting = _terminated(status), get_mapping(status, "state", "waiting")
        if terminated is not None and get_int(terminated, "exitCode") == 0:
            continue
        if is_sidecar and status.get("started") is True:
            summary.ready += status.get("ready") is True
            continue
        if terminated is not None:
            summary.reason = f"Init:{_exit_reason(terminated)}"
        elif get_text(waiting, "reason") not in {"", "PodInitializing"}:
            summary.reason = f"Init:{get_text(waiting, 'reason')}"
        else:
            summary.reason = f"Init:{index}/{len(init_containers)}"
        return True
    return False


def _check_containers(pod: JsonObject, summary: _PodSummary) -> None:
    has_running = False
    for status in reversed(get_mappings(pod, "status", "containerStatuses")):
        summary.add_restarts(status)
        terminated = _terminated(status)
        if waiting_reason := get_text(status, "state", "waiting", "reason"):
            summary.reason = waiting_reason
        elif terminated is not None:
            summary.reason = _exit_reason(terminated)
        elif status.get("ready") is True and "running" in get_mapping(status, "state"):
            has_running = True
            summary.ready += 1
    if summary.reason == "Completed" and has_running:
        summary.reason = "Running" if is_condition_true(pod, "Ready") else "NotReady"


def _terminated(status: JsonObject) -> JsonObject | None:
    value = get_value(status, "state", "terminated")
    return value if isinstance(value, dict) else None


def _exit_reason(terminated: JsonObject) -> str:
    signal, code = get_int(terminated, "signal"), get_int(terminated, "exitCode")
    return get_text(terminated, "reason") or (f"Signal:{signal}" if signal else f"ExitCode:{code}")


def _ready(pod: JsonObject, _now: Ms) -> Json:
    sidecars = [
        container
        for container in get_mappings(pod, "spec", "initContainers")
        if get_text(container, "restartPolicy") == "Always"
    ]
    total = len(get_mappings(pod, "spec", "containers")) + len(sidecars)
    return f"{_summarize(pod).ready}/{total}"


def _status(pod: JsonObject, _now: Ms) -> Json:
    return _summarize(pod).reason


def _restarts(pod: JsonObject, now: Ms) -> Json:
    summary = _summarize(pod)
    if not summary.restarts or not summary.restart_times:
        return str(summary.restarts)
    return (
        f"{summary.restarts} ({human_duration((now - max(summary.restart_times)) // SECOND)} ago)"
    )


def _address(pod: JsonObject, _now: Ms) -> Json:
    return get_text(pod, "status", "podIP", default=NONE)


def _node(pod: JsonObject, _now: Ms) -> Json:
    return get_text(pod, "spec", "nodeName", default=NONE)


def _nominated(pod: JsonObject, _now: Ms) -> Json:
    return get_text(pod, "status", "nominatedNodeName", default=NONE)


def _readiness_gates(pod: JsonObject, _now: Ms) -> Json:
    gates = get_mappings(pod, "spec", "readinessGates")
    satisfied = sum(is_condition_true(pod, get_text(gate, "conditionType")) for gate in gates)
    return f"{satisfied}/{len(gates)}" if gates else NONE


POD_COLUMNS = (
    NAME,
    TableColumn("Ready", _ready),
    TableColumn("Status", _status),
    TableColumn("Restarts", _restarts),
    AGE,
    TableColumn("IP", _address, is_wide=True),
    TableColumn("Node", _node, is_wide=True),
    TableColumn("Nominated Node", _nominated, is_wide=True),
    TableColumn("Readiness Gates", _readiness_gates, is_wide=True),
)
