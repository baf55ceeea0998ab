"""Pods: how many containers are ready, what their state is called, and how often they restarted."""

from __future__ import annotations

import msgspec

from tidegate.apiserver.printing.cells import AGE, NAME, NONE, Body, Printer, at, human, is_true
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number, part, text

ENDED = ("Succeeded", "Failed")


class _Standing(msgspec.Struct):
    """What is counted over a pod's containers."""

    reason: str
    ready: int = 0
    restarts: int = 0
    restarted: list[Ms] = msgspec.field(default_factory=list)

    def note(self, status: Body) -> None:
        self.restarts += number(status, "restartCount")
        if ended := part(status, "lastState", "terminated", "finishedAt"):
            self.restarted.append(at(ended))


def _stand(pod: Body) -> _Standing:
    phase = text(pod, "status", "phase")
    reason = text(pod, "status", "reason") or phase
    scheduled = [
        one for one in mappings(pod, "status", "conditions") if text(one, "type") == "PodScheduled"
    ]
    if any(text(one, "reason") == "SchedulingGated" for one in scheduled):
        reason = "SchedulingGated"
    standing, sidecars = _Standing(reason), _Standing(reason)
    if not _begin(pod, standing, sidecars) or is_true(pod, "Initialized"):
        sidecars.ready, sidecars.reason = standing.ready, standing.reason
        standing = sidecars
        _run(pod, standing)
    if part(pod, "metadata", "deletionTimestamp"):
        if text(pod, "status", "reason") == "NodeLost":
            standing.reason = "Unknown"
        elif phase not in ENDED:
            standing.reason = "Terminating"
    return standing


def _begin(pod: Body, standing: _Standing, sidecars: _Standing) -> bool:
    """Look at the init containers; whether one of them is still at it."""
    known = {text(one, "name"): one for one in mappings(pod, "spec", "initContainers")}
    for place, status in enumerate(mappings(pod, "status", "initContainerStatuses")):
        is_sidecar = text(known.get(text(status, "name")), "restartPolicy") == "Always"
        standing.note(status)
        if is_sidecar:
            sidecars.note(status)
        ended, waiting = _terminated(status), mapping(status, "state", "waiting")
        if ended is not None and number(ended, "exitCode") == 0:
            continue
        if is_sidecar and status.get("started") is True:
            standing.ready += status.get("ready") is True
            continue
        if ended is not None:
            standing.reason = f"Init:{_ending(ended)}"
        elif text(waiting, "reason") not in {"", "PodInitializing"}:
            standing.reason = f"Init:{text(waiting, 'reason')}"
        else:
            standing.reason = f"Init:{place}/{len(known)}"
        return True
    return False


def _run(pod: Body, standing: _Standing) -> None:
    has_running = False
    for status in reversed(mappings(pod, "status", "containerStatuses")):
        standing.note(status)
        ended = _terminated(status)
        if waits := text(status, "state", "waiting", "reason"):
            standing.reason = waits
        elif ended is not None:
            standing.reason = _ending(ended)
        elif status.get("ready") is True and "running" in mapping(status, "state"):
            has_running = True
            standing.ready += 1
    if standing.reason == "Completed" and has_running:
        standing.reason = "Running" if is_true(pod, "Ready") else "NotReady"


def _terminated(status: Body) -> Body | None:
    found = part(status, "state", "terminated")
    return found if isinstance(found, dict) else None


def _ending(ended: Body) -> str:
    signal, code = number(ended, "signal"), number(ended, "exitCode")
    return text(ended, "reason") or (f"Signal:{signal}" if signal else f"ExitCode:{code}")


def _ready(pod: Body, _now: Ms) -> Json:
    sidecars = [
        one
        for one in mappings(pod, "spec", "initContainers")
        if text(one, "restartPolicy") == "Always"
    ]
    total = len(mappings(pod, "spec", "containers")) + len(sidecars)
    return f"{_stand(pod).ready}/{total}"


def _status(pod: Body, _now: Ms) -> Json:
    return _stand(pod).reason


def _restarts(pod: Body, now: Ms) -> Json:
    standing = _stand(pod)
    if not standing.restarts or not standing.restarted:
        return str(standing.restarts)
    return f"{standing.restarts} ({human((now - max(standing.restarted)) // SECOND)} ago)"


def _address(pod: Body, _now: Ms) -> Json:
    return text(pod, "status", "podIP", default=NONE)


def _node(pod: Body, _now: Ms) -> Json:
    return text(pod, "spec", "nodeName", default=NONE)


def _nominated(pod: Body, _now: Ms) -> Json:
    return text(pod, "status", "nominatedNodeName", default=NONE)


def _gates(pod: Body, _now: Ms) -> Json:
    gates = mappings(pod, "spec", "readinessGates")
    met = sum(is_true(pod, text(one, "conditionType")) for one in gates)
    return f"{met}/{len(gates)}" if gates else NONE


POD = (
    NAME,
    Printer("Ready", _ready),
    Printer("Status", _status),
    Printer("Restarts", _restarts),
    AGE,
    Printer("IP", _address, wide=True),
    Printer("Node", _node, wide=True),
    Printer("Nominated Node", _nominated, wide=True),
    Printer("Readiness Gates", _gates, wide=True),
)
