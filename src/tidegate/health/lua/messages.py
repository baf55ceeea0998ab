"""What is asked of a worker that runs scripts, what it answers, and what the answer means.

A question is a script and an object; an answer is what the script said, or why it said nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_int
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict

CODES = frozenset(one.value for one in Health)
INVALID_STATUS = "Lua returned an invalid health status"
"""Argo CD's own words."""


class Question(msgspec.Struct, frozen=True, gc=False):
    """A script, the object as JSON, and the time for it in seconds."""

    script: str
    open_libs: bool
    now: int
    body: bytes

    def __repr__(self) -> str:
        return f"Question({len(self.body)} bytes)"


class Returned(msgspec.Struct, frozen=True, tag="said", gc=False):
    """A script returned a table; its status may be any text."""

    status: str
    message: str


class Silent(msgspec.Struct, frozen=True, tag="silent", gc=False):
    """A script returned nothing, or a table that tells no health."""


class Broke(msgspec.Struct, frozen=True, tag="broke", gc=False):
    """A script ended in an error, or was ended."""

    problem: str


ScriptAnswer: TypeAlias = Returned | Silent | Broke
write_question = msgspec.msgpack.Encoder().encode
read_question = msgspec.msgpack.Decoder(Question).decode
write_answer: Callable[[ScriptAnswer], bytes] = msgspec.msgpack.Encoder().encode
read_answer: Callable[[bytes], ScriptAnswer] = msgspec.msgpack.Decoder(ScriptAnswer).decode


def read_verdict(reply: bytes, body: dict[str, Json]) -> Verdict:
    """What a worker's reply says of an object."""
    health, reason, sentence = _meaning(read_answer(reply))
    seen = get_int(body, "status", "observedGeneration")
    return Verdict(health, reason, sanitize(sentence), observed_generation=seen)


def _meaning(answer: ScriptAnswer) -> tuple[Health, str, str]:
    match answer:
        case Returned(status, message) if status in CODES:
            return Health(status), status, message or f"its script says {status}"
        case Returned():
            return Health.UNKNOWN, "InvalidStatus", INVALID_STATUS
        case Silent():
            return Health.UNKNOWN, "NoStatus", "its script does not say how it is"
        case Broke(problem):
            return Health.UNKNOWN, "LuaError", problem
