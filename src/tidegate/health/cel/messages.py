"""Requests to a CEL worker, its responses, and the verdict that a response means.

A request has expressions and their variables. They are evaluated in order until one is true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_int
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict

IN_PROGRESS, FAILED, CURRENT = range(3)
"""The indexes of the three health expressions."""


class CelRequest(msgspec.Struct, frozen=True, gc=False):
    """Expressions and their variables. An empty expression is never true."""

    expressions: tuple[str, ...]
    """The expressions, in the order of evaluation."""
    variables: bytes = b"{}"
    """The variables as JSON."""
    checked: bool = False
    """Whether to check types first and to reject expressions that are not boolean."""

    def __repr__(self) -> str:
        return f"CelRequest({len(self.variables)} bytes)"


class CelMatch(msgspec.Struct, frozen=True, tag="chose", gc=False):
    """The index of the first expression that is true, or -1."""

    index: int
    """The index of the expression; -1 if none is true."""


class CelCompileError(msgspec.Struct, frozen=True, tag="uncompiled", gc=False):
    """An expression that cannot be compiled."""

    index: int
    """The index of the expression."""
    problem: str
    """The message of the compiler."""


class CelEvaluationError(msgspec.Struct, frozen=True, tag="failing", gc=False):
    """An expression that ended in an error, or whose worker was killed."""

    index: int
    """The index of the expression."""
    problem: str
    """The message of the interpreter."""


CelResponse: TypeAlias = CelMatch | CelCompileError | CelEvaluationError
encode_cel_request = msgspec.msgpack.Encoder().encode
decode_cel_request = msgspec.msgpack.Decoder(CelRequest).decode
encode_cel_response: Callable[[CelResponse], bytes] = msgspec.msgpack.Encoder().encode
decode_cel_response: Callable[[bytes], CelResponse] = msgspec.msgpack.Decoder(CelResponse).decode


def read_cel_verdict(reply: bytes, body: dict[str, Json]) -> Verdict:
    """Return the verdict on an object from an encoded response."""
    health, reason, message = _interpret_response(decode_cel_response(reply))
    observed = get_int(body, "status", "observedGeneration")
    return Verdict(health, reason, sanitize(message), observed_generation=observed)


def _interpret_response(answer: CelResponse) -> tuple[Health, str, str]:
    match answer:
        case CelMatch(place) if place == CURRENT:
            return Health.HEALTHY, "Current", "expression `current` is true"
        case CelMatch(place) if place == FAILED:
            return Health.DEGRADED, "Failed", "expression `failed` is true"
        case CelMatch(place) if place == IN_PROGRESS:
            return Health.PROGRESSING, "InProgress", "expression `inProgress` is true"
        case CelMatch():
            return Health.PROGRESSING, "InProgress", "expression `current` is not true yet"
        case CelCompileError(_, problem) | CelEvaluationError(_, problem):
            return Health.UNKNOWN, "CELError", problem
