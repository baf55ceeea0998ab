"""Gateway API: Gateway, GatewayClass, the routes and BackendTLSPolicy, as Argo CD judges them.

Their conditions stand in lists inside lists: those of each listener, parent or ancestor. A parent
whose conditions speak of another generation is passed over.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    Body,
    conditions_of,
    is_true,
    message_of,
    reason_of,
    say,
)
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.model.verdict import Health, Verdict


class _Trouble(NamedTuple):
    health: Health
    condition: Body
    sentence: str


def judge_gateway_class(body: Body) -> Verdict:
    for one in conditions_of(body):
        if one.get("type") != "Accepted" or not _speaks_of(body, one):
            continue
        health, default = {
            "True": (HEALTHY, "GatewayClass is accepted"),
            "False": (DEGRADED, "GatewayClass is not accepted"),
        }.get(text(one, "status"), (PROGRESSING, "Waiting for GatewayClass status"))
        sentence = _told(one, default)
        return say(body, health, reason_of(one, default="Accepted"), sentence, condition=one)
    return say(body, PROGRESSING, "NoStatus", "Waiting for GatewayClass status")


def judge_gateway(body: Body) -> Verdict:
    trouble = _trouble_in(conditions_of(body), "Gateway")
    if trouble is not None:
        return _say_trouble(body, trouble)
    listeners = mappings(body, "status", "listeners")
    for listener in listeners:
        trouble = _trouble_in(mappings(listener, "conditions"), "Listener")
        if trouble is not None:
            return _say_trouble(body, trouble, "Listener: ")
    if part(body, "status", "conditions") is None and not listeners:
        return say(body, PROGRESSING, "NoStatus", "Waiting for Gateway status")
    programmed = next((one for one in conditions_of(body) if one.get("type") == "Programmed"), {})
    return say(body, HEALTHY, "Programmed", "Gateway is healthy", condition=programmed)


def judge_route(body: Body) -> Verdict:
    kind = text(body, "kind")
    current = [one for one in mappings(body, "status", "parents") if _is_current(body, one)]
    for parent in current:
        trouble = _trouble_in(mappings(parent, "conditions"), "Route")
        if trouble is not None:
            name = text(parent, "parentRef", "name")
            return _say_trouble(body, trouble, f"Parent {name}: ")
    spoken = [one for one in current if mappings(one, "conditions")]
    if not spoken:
        return say(body, PROGRESSING, "NoStatus", f"Waiting for {kind} status")
    first = mappings(spoken[0], "conditions")[0]
    return say(body, HEALTHY, "Accepted", f"{kind} is healthy", condition=first)


def judge_backend_policy(body: Body) -> Verdict:
    verdict = say(body, PROGRESSING, "NoStatus", "Waiting for BackendTLSPolicy status")
    said = [
        (text(mapping(ancestor, "ancestorRef"), "name"), one)
        for ancestor in mappings(body, "status", "ancestors")
        for one in mappings(ancestor, "conditions")
    ]
    for name, one in said:
        if not _speaks_of(body, one):
            sentence = f"Waiting for Ancestor {name} to update BackendTLSPolicy status"
            return say(body, PROGRESSING, "GenerationNotObserved", sentence, condition=one)
    for name, one in said:
        if one.get("type") in ("Accepted", "ResolvedRefs") and not is_true(one):
            sentence = f"Ancestor {name}: {message_of(one)}"
            reason = reason_of(one, default=f"Not{text(one, 'type')}")
            return say(body, DEGRADED, reason, sentence, condition=one)
        if one.get("type") == "Accepted":
            verdict = say(body, HEALTHY, "Accepted", "BackendTLSPolicy is healthy", condition=one)
    return verdict


def _trouble_in(conditions: list[Body], noun: str) -> _Trouble | None:
    """What is wrong, worst first; or that it is not programmed yet."""
    for name in ("ResolvedRefs", "Accepted"):
        for one in conditions:
            if one.get("type") == name and one.get("status") == "False":
                return _Trouble(DEGRADED, one, _told(one, f"Failed condition: {name}"))
    for one in conditions:
        if one.get("type") == "Programmed" and not is_true(one):
            return _Trouble(PROGRESSING, one, _told(one, f"{noun} is still being programmed"))
    return None


def _say_trouble(body: Body, trouble: _Trouble, prefix: str = "") -> Verdict:
    one = trouble.condition
    reason = reason_of(one, default=f"Not{text(one, 'type')}")
    return say(body, trouble.health, reason, prefix + trouble.sentence, condition=one)


def _told(condition: Body, default: str) -> str:
    """The message, which may be empty but must be there."""
    told = part(condition, "message")
    return told if isinstance(told, str) else default


def _is_current(body: Body, parent: Body) -> bool:
    conditions = mappings(parent, "conditions")
    if not number(body, "metadata", "generation"):
        return True
    return bool(conditions) and all(_speaks_of(body, one) for one in conditions)


def _speaks_of(body: Body, condition: Body) -> bool:
    """Whether a condition is about the object as it is now, as far as both tell."""
    wanted: Json = part(body, "metadata", "generation")
    seen: Json = part(condition, "observedGeneration")
    return wanted is None or seen is None or wanted == seen
