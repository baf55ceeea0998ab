"""Making verdicts: what every rule of Argo CD's says, and how it finds a condition."""

from __future__ import annotations

from typing import TypeAlias

from tidegate.errors import foreign
from tidegate.model.objects import Json
from tidegate.model.reading import NOTHING, mappings, number, text
from tidegate.model.verdict import Health, Verdict

Body: TypeAlias = dict[str, Json]

HEALTHY, PROGRESSING, DEGRADED = Health.HEALTHY, Health.PROGRESSING, Health.DEGRADED
SUSPENDED, UNKNOWN = Health.SUSPENDED, Health.UNKNOWN


def say(
    body: Body,
    health: Health,
    reason: str,
    sentence: str,
    *,
    condition: Body = NOTHING,
    final: bool = False,
) -> Verdict:
    """A verdict on a body; `condition` is the one that decided, if one did.

    Where nobody wrote a message, the reason must do.
    """
    # The generation that the status speaks of; 0 where it does not tell.
    own = number(condition, "observedGeneration")
    seen = number(body, "status", "observedGeneration", default=own)
    return Verdict(health, foreign(reason), foreign(sentence) or foreign(reason), final, seen)


def is_unobserved(body: Body) -> bool:
    """Whether the status speaks of an older generation, as Go reads one that is missing: 0."""
    return number(body, "metadata", "generation") > number(body, "status", "observedGeneration")


def conditions_of(body: Body) -> list[Body]:
    return mappings(body, "status", "conditions")


def condition_of(body: Body, name: str) -> Body:
    """The first condition of a type; empty where there is none."""
    return next((one for one in conditions_of(body) if one.get("type") == name), NOTHING)


def is_true(condition: Body) -> bool:
    return condition.get("status") == "True"


def message_of(condition: Body) -> str:
    return text(condition, "message")


def reason_of(condition: Body, *, default: str) -> str:
    return text(condition, "reason", default=default)


def count(amount: int, noun: str) -> str:
    """`1 replica`, `3 replicas`."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def breaks(body: Body, problem: str) -> Verdict:
    """Unknown: Argo CD's script stops with an error on such a body."""
    return say(body, UNKNOWN, "NotUnderstood", f"Argo CD cannot judge it: {problem}")
