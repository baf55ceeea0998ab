"""Marks: which assumptions the course of a pod rests on, noted where output can find them.

An annotation of the pod names them all. It is written with a status, so it costs no write of its
own; what is assumed of an end or of a wait is told in words as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text
from tidegate.sandbox.server.store import Body, Stored

MARK = "tidegate.dev/assumed"

DURATIONS = "durations"
PROBES_FOLLOW = "probes-follow-ready"
DIAL_FAILS, DIAL_POLLS, HOSTS = "dial-fails", "dial-polls", "hosts"
SERVERS_WAIT = "servers-wait"
KILLED_BY_PROBE = "killed-by-probe"
ENDED_BY_SIGNAL = "ended-by-signal"
"""Assumptions, by the names that they have in a profile."""
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


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
