"""Refusals as Kubernetes tells them: an HTTP status, and an object of kind Status."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.moment import SECOND
from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.world import facts

Body = dict[str, Json]
UNREACHED, UNPROCESSABLE, FORBIDDEN = 500, 422, 403
UNTYPED, UNDECODED = "failed to create typed patch object", "strict decoding error"
_MISSING = late(r'(?P<plural>[^.\s]+)\.?(?P<group>\S*) "(?P<name>.*)" not found')
"""What is missing need not be what was asked for: it may be the namespace."""


class Refused(NamedTuple):
    """What goes over the wire."""

    status: int
    body: Body
    retry_after: int = 0


def status_of(code: int, reason: str, message: str, **details: Json) -> Body:
    """A failure in Kubernetes' own form."""
    body: Body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details:
        body["details"] = details
    return {**body, "code": code}


ANSWERS: dict[type[facts.Refusal], tuple[int, str]] = {
    facts.Missing: (404, "NotFound"),
    facts.NotServed: (404, "NotFound"),
    facts.Exists: (409, "AlreadyExists"),
    facts.Conflict: (409, "Conflict"),
    facts.Forbidden: (FORBIDDEN, "Forbidden"),
    facts.Expired: (410, "Expired"),
    facts.Lost: (UNREACHED, "InternalError"),
}


def refused(outcome: facts.Refusal, **about: Json) -> Refused:
    """A refusal; `about` says which object of which kind was asked for."""
    match outcome:
        case facts.Throttled():
            seconds = max(1, round(outcome.after / SECOND))
            told = status_of(429, "TooManyRequests", outcome.message, retryAfterSeconds=seconds)
            return Refused(429, told, seconds)
        case facts.Failed():
            return _refused(outcome.status or UNREACHED, outcome.reason, outcome.message)
        case facts.Invalid():
            code, reason = _wrong(outcome)
        case _:
            code, reason = ANSWERS[type(outcome)]
    if isinstance(outcome, facts.NotServed):
        about = {}  # by its details a client tells a missing object from a kind that is not served
    elif isinstance(outcome, facts.Missing) and (named := _MISSING.fullmatch(outcome.message)):
        about = {"name": named["name"], "group": named["group"], "kind": named["plural"]}
    causes = outcome.causes if isinstance(outcome, facts.Invalid | facts.Forbidden) else ()
    causes = causes if code in {UNPROCESSABLE, FORBIDDEN} else ()
    told_causes = _owned(outcome) if isinstance(outcome, facts.Conflict) else _causes(causes)
    return _refused(code, reason, outcome.message, causes=told_causes, **about)


def _wrong(outcome: facts.Invalid) -> tuple[int, str]:
    """What decoders and mergers find is told in the message alone."""
    if UNTYPED in outcome.message:
        return UNREACHED, ""
    return (UNPROCESSABLE, "Invalid") if _is_checked(outcome) else (400, "BadRequest")


def _is_checked(outcome: facts.Invalid) -> bool:
    return bool(outcome.causes) and not outcome.message.startswith(UNDECODED)


def _refused(code: int, reason: str, message: str, **details: Json) -> Refused:
    known = {key: value for key, value in details.items() if value}
    return Refused(code, status_of(code, reason, message, **known))


def _causes(causes: tuple[facts.Cause, ...]) -> Json:
    return [{"reason": one.reason, "message": one.message, "field": one.field} for one in causes]


def _owned(conflict: facts.Conflict) -> Json:
    return [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{one.manager}"',
            "field": f".{one.field}",
        }
        for one in conflict.managers
    ]
