"""Container states, read from and written to a pod's status, and their assumptions.

An annotation of the pod lists all assumptions that its simulation relies on. It is written
together with a status, so it costs no extra write. Assumptions about an exit or a wait are also
recorded as Events.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject

ASSUMED_ANNOTATION = "tidegate.dev/assumed"
DURATIONS = "durations"
PROBES_FOLLOW = "probes-follow-ready"
DIAL_FAILS, DIAL_POLLS, HOSTS = "dial-fails", "dial-polls", "hosts"
SERVERS_WAIT = "servers-wait"
KUBECTL = "kubectl-waits"
KILLED_BY_PROBE = "killed-by-probe"
ENDED_BY_SIGNAL = "ended-by-signal"
"""Names of assumptions, as in a profile."""
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
CREATING, INITIALIZING = "ContainerCreating", "PodInitializing"


def recorded_assumptions(pod: StoredObject) -> tuple[str, ...]:
    """Return the assumptions recorded on a pod, in order."""
    value = get_text(pod.metadata, "annotations", ASSUMED_ANNOTATION)
    return tuple(value.split(",")) if value else ()


def assumption_metadata(pod: StoredObject, used: Iterable[str]) -> JsonObject:
    """Return metadata that adds assumptions to those of a pod; empty if all are recorded."""
    recorded = recorded_assumptions(pod)
    all_assumptions = sorted({*recorded, *used})
    if len(all_assumptions) == len(recorded):
        return {}
    return {"annotations": {ASSUMED_ANNOTATION: ",".join(all_assumptions)}}


def start_assumptions(container: Json) -> tuple[str, ...]:
    """Return the assumptions about a starting container: its durations and its probes."""
    has_probe = any(get_mapping(container, name) for name in PROBES)
    return (DURATIONS, PROBES_FOLLOW) if has_probe else (DURATIONS,)


def format_assumptions(*assumptions: str) -> str:
    """Return the names of assumptions as a part of a message."""
    return f"(assumed: {', '.join(assumptions)})"


class ContainerRole(Enum):
    """The role of a container in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class WaitingState(NamedTuple):
    """The state `waiting`."""

    reason: str
    """Reason for programs."""
    message: str = ""
    """Message for people."""


class RunningState(NamedTuple):
    """The state `running`."""

    started_at: Ms
    """When the container started."""


class TerminatedState(NamedTuple):
    """The state `terminated`."""

    code: int
    """The exit code."""
    reason: str
    """Reason for programs."""
    message: str
    """The termination message."""
    started_at: Ms
    """When the container started."""
    finished_at: Ms
    """When the container exited."""


class ContainerStatus(NamedTuple):
    """The status of a container, as in the pod's status."""

    name: str
    """The name of the container."""
    image: str
    """The running image, which differs from the spec after a change in place."""
    state: WaitingState | RunningState | TerminatedState
    """The current state."""
    last: TerminatedState | None = None
    """The state at the end of the previous run; None for the first run."""
    restarts: int = 0
    """Number of restarts."""
    started: bool = False
    """Whether the startup probe has succeeded."""
    ready: bool = False
    """Whether the readiness probe has succeeded."""


def container_role(container: Json, *, is_init: bool) -> ContainerRole:
    """Return the role of a container."""
    if not is_init:
        return ContainerRole.MAIN
    return (
        ContainerRole.SIDECAR
        if get_text(container, "restartPolicy") == "Always"
        else ContainerRole.INIT
    )


def truncate_to_second(now: Ms) -> Ms:
    """Return a time without fractions of a second, as in a status."""
    return Ms(now // SECOND * SECOND)


def read_container_status(container: Json, status: Json, default_reason: str) -> ContainerStatus:
    """Read the status of a container; without one, return that of a waiting container."""
    state = get_mapping(status, "state")
    last = get_mapping(status, "lastState", "terminated")
    return ContainerStatus(
        get_text(container, "name"),
        get_text(status, "image", default=get_text(container, "image")),
        _read_state(state, default_reason),
        _read_terminated(last) if last else None,
        get_int(status, "restartCount"),
        get_mapping(status).get("started") is True,
        get_mapping(status).get("ready") is True,
    )


def _read_state(
    state: JsonObject, default_reason: str
) -> WaitingState | RunningState | TerminatedState:
    if running := get_mapping(state, "running"):
        return RunningState(read_timestamp(running.get("startedAt")) or Ms(0))
    if terminated := get_mapping(state, "terminated"):
        return _read_terminated(terminated)
    waiting_state = get_mapping(state, "waiting")
    return WaitingState(
        get_text(waiting_state, "reason", default=default_reason),
        get_text(waiting_state, "message"),
    )


def _read_terminated(terminated: JsonObject) -> TerminatedState:
    return TerminatedState(
        get_int(terminated, "exitCode"),
        get_text(terminated, "reason"),
        get_text(terminated, "message"),
        read_timestamp(terminated.get("startedAt")) or Ms(0),
        read_timestamp(terminated.get("finishedAt")) or Ms(0),
    )


def write_container_status(status: ContainerStatus) -> JsonObject:
    """Return a status in the format of a pod's status.

    Like `convertToAPIContainerStatuses` in `pkg/kubelet/kubelet_pods.go` of Kubernetes 1.36.4.
    """
    return {
        "name": status.name,
        "state": _write_state(status.state),
        "lastState": _write_state(status.last) if status.last else {},
        "ready": status.ready,
        "restartCount": status.restarts,
        "image": status.image,
        "imageID": "",
        "started": status.started,
    }


def _write_state(state: WaitingState | RunningState | TerminatedState) -> JsonObject:
    match state:
        case WaitingState():
            waiting: JsonObject = {"reason": state.reason}
            return {"waiting": {**waiting, "message": state.message} if state.message else waiting}
        case RunningState():
            return {"running": {"startedAt": format_rfc3339(state.started_at)}}
        case TerminatedState():
            terminated: JsonObject = {
                "exitCode": state.code,
                "reason": state.reason,
                "startedAt": format_rfc3339(state.started_at),
                "finishedAt": format_rfc3339(state.finished_at),
            }
            return {
                "terminated": {**terminated, "message": state.message}
                if state.message
                else terminated
            }
