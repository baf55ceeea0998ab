"""Kubernetes Events and log lines."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.times import Ms


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """An Event: when it was last seen, its object and its count."""

    at: Ms
    type: str
    reason: str
    namespace: str
    object: str
    message: str
    times: int = 1


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A log line of a container."""

    pod: Ref
    container: str
    line: str

    def __str__(self) -> str:
        return f"{self.pod.name}/{self.container} | {self.line}"
