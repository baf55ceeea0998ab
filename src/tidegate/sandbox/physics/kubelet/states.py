"""The states of a container, read from a pod's status and written into it; and what is assumed.

Marks are the assumptions that the course of a pod rests on. An annotation of the pod names them
all. It is written with a status, so it costs no write of its own; what is assumed of an end or of a
wait is told in words as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, number, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored

MARK = "tidegate.dev/assumed"

DURATIONS = "durations"
PROBES_FOLLOW = "probes-follow-ready"
DIAL_FAILS, DIAL_POLLS, HOSTS = "dial-fails", "dial-polls", "hosts"
SERVERS_WAIT = "servers-wait"
KUBECTL = "kubectl-waits"
KILLED_BY_PROBE = "killed-by-probe"
ENDED_BY_SIGNAL = "ended-by-signal"
"""Assumptions, by the names that they have in a profile."""
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
CREATING, INITIALIZING = "ContainerCreating", "PodInitializing"


def marks_of(pod: Stored) -> tuple[str, ...]:
    """The assumptions that have come into play so far, in order."""
    told = text(pod.metadata, "annotations", MARK)
    return tuple(told.split(",")) if told else ()


def mark(pod: Stored, used: Iterable[str]) -> Body:
    """The metadata that adds assumptions to those of a pod; empty where it has them all."""
    known = marks_of(pod)
    every = sorted({*known, *used})
    if len(every) == len(known):
        return {}
    return {"annotations": {MARK: ",".join(every)}}


def assumed_of_start(container: Json) -> tuple[str, ...]:
    """What is assumed of every container that begins: how long it takes, how its probes go."""
    has_probe = any(mapping(container, name) for name in PROBES)
    return (DURATIONS, PROBES_FOLLOW) if has_probe else (DURATIONS,)


def in_words(*assumptions: str) -> str:
    return f"(assumed: {', '.join(assumptions)})"


class ContainerRole(Enum):
    """What a container is in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class Waiting(NamedTuple):
    reason: str
    message: str = ""


class Running(NamedTuple):
    began: Ms


class Terminated(NamedTuple):
    code: int
    reason: str
    message: str
    began: Ms
    finished: Ms


class Box(NamedTuple):
    """A container as its pod's status tells it."""

    name: str
    image: str
    """What it runs, which is not what it should run when that was changed in place."""
    state: Waiting | Running | Terminated
    last: Terminated | None = None
    restarts: int = 0
    started: bool = False
    ready: bool = False


def role_of(container: Json, *, is_init: bool) -> ContainerRole:
    if not is_init:
        return ContainerRole.MAIN
    return (
        ContainerRole.SIDECAR
        if text(container, "restartPolicy") == "Always"
        else ContainerRole.INIT
    )


def whole_second(now: Ms) -> Ms:
    """Times in a status have no fractions."""
    return Ms(now // SECOND * SECOND)


def read_box(container: Json, status: Json, waiting: str) -> Box:
    """The container's own status, or one of a container that nothing is known of yet."""
    state = mapping(status, "state")
    last = mapping(status, "lastState", "terminated")
    return Box(
        text(container, "name"),
        text(status, "image", default=text(container, "image")),
        _read_state(state, waiting),
        _read_ended(last) if last else None,
        number(status, "restartCount"),
        mapping(status).get("started") is True,
        mapping(status).get("ready") is True,
    )


def _read_state(state: Body, waiting: str) -> Waiting | Running | Terminated:
    if running := mapping(state, "running"):
        return Running(moment_of(running.get("startedAt")) or Ms(0))
    if ended := mapping(state, "terminated"):
        return _read_ended(ended)
    known = mapping(state, "waiting")
    return Waiting(text(known, "reason", default=waiting), text(known, "message"))


def _read_ended(ended: Body) -> Terminated:
    return Terminated(
        number(ended, "exitCode"),
        text(ended, "reason"),
        text(ended, "message"),
        moment_of(ended.get("startedAt")) or Ms(0),
        moment_of(ended.get("finishedAt")) or Ms(0),
    )


def write_box(box: Box) -> Body:
    return {
        "name": box.name,
        "state": _write_state(box.state),
        "lastState": _write_state(box.last) if box.last else {},
        "ready": box.ready,
        "restartCount": box.restarts,
        "image": box.image,
        "imageID": "",
        "started": box.started,
    }


def _write_state(state: Waiting | Running | Terminated) -> Body:
    match state:
        case Waiting():
            told: Body = {"reason": state.reason}
            return {"waiting": {**told, "message": state.message} if state.message else told}
        case Running():
            return {"running": {"startedAt": timestamp(state.began)}}
        case Terminated():
            ended: Body = {
                "exitCode": state.code,
                "reason": state.reason,
                "startedAt": timestamp(state.began),
                "finishedAt": timestamp(state.finished),
            }
            return {"terminated": {**ended, "message": state.message} if state.message else ended}
