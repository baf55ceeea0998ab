"""What is asked of a worker that evaluates expressions, what it answers, and what that means.

A question is expressions and their variables. They are asked in order, and the first that is true
ends it. An answer is which one that was, or why there is no answer.
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
"""The places of the three expressions about health."""


class CelQuestion(msgspec.Struct, frozen=True, gc=False):
    """Expressions, and as JSON the variables they may use. An empty one is never true.

    `checked`: types are checked first, and what cannot be told to be true or false is refused.
    """

    expressions: tuple[str, ...]
    variables: bytes = b"{}"
    checked: bool = False

    def __repr__(self) -> str:
        return f"CelQuestion({len(self.variables)} bytes)"


class Chose(msgspec.Struct, frozen=True, tag="chose", gc=False):
    """The place of the first expression that is true; -1 where none is."""

    place: int


class Uncompiled(msgspec.Struct, frozen=True, tag="uncompiled", gc=False):
    """The expression at a place cannot be used, whatever its variables are."""

    place: int
    problem: str


class Failing(msgspec.Struct, frozen=True, tag="failing", gc=False):
    """The expression at a place ended in an error, or its worker was ended."""

    place: int
    problem: str


CelAnswer: TypeAlias = Chose | Uncompiled | Failing
write_cel_question = msgspec.msgpack.Encoder().encode
read_cel_question = msgspec.msgpack.Decoder(CelQuestion).decode
write_cel_answer: Callable[[CelAnswer], bytes] = msgspec.msgpack.Encoder().encode
read_cel_answer: Callable[[bytes], CelAnswer] = msgspec.msgpack.Decoder(CelAnswer).decode


def read_cel_verdict(reply: bytes, body: dict[str, Json]) -> Verdict:
    """What a worker's reply says of an object."""
    health, reason, sentence = _meaning(read_cel_answer(reply))
    seen = get_int(body, "status", "observedGeneration")
    return Verdict(health, reason, sanitize(sentence), observed_generation=seen)


def _meaning(answer: CelAnswer) -> tuple[Health, str, str]:
    match answer:
        case Chose(place) if place == CURRENT:
            return Health.HEALTHY, "Current", "its expression `current` is true"
        case Chose(place) if place == FAILED:
            return Health.DEGRADED, "Failed", "its expression `failed` is true"
        case Chose(place) if place == IN_PROGRESS:
            return Health.PROGRESSING, "InProgress", "its expression `inProgress` is true"
        case Chose():
            return Health.PROGRESSING, "InProgress", "its expression `current` is not true yet"
        case Uncompiled(_, problem) | Failing(_, problem):
            return Health.UNKNOWN, "CELError", problem
