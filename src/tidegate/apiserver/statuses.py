"""Error responses: an HTTP status with a `Status` object."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.moment import SECOND
from tidegate.model.objects import Json, JsonObject
from tidegate.model.patterns import lazy_regex
from tidegate.world import facts

INTERNAL_ERROR, UNPROCESSABLE, FORBIDDEN = 500, 422, 403
TYPED_PATCH_ERROR, STRICT_DECODING_ERROR = (
    "failed to create typed patch object",
    "strict decoding error",
)
_NOT_FOUND_MESSAGE = lazy_regex(r'(?P<plural>[^.\s]+)\.?(?P<group>\S*) "(?P<name>.*)" not found')
"""The missing object may be another one than the requested object, such as its namespace."""


class ErrorResponse(NamedTuple):
    """An error response."""

    status: int
    body: JsonObject
    retry_after: int = 0
    """Seconds; 0 for none."""


def build_status(code: int, reason: str, message: str, **details: Json) -> JsonObject:
    """Return a failure as a Kubernetes `Status` object."""
    body: JsonObject = {
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


STATUS_CODES: dict[type[facts.ErrorOutcome], tuple[int, str]] = {
    facts.NotFound: (404, "NotFound"),
    facts.NotServed: (404, "NotFound"),
    facts.AlreadyExists: (409, "AlreadyExists"),
    facts.Conflict: (409, "Conflict"),
    facts.Forbidden: (FORBIDDEN, "Forbidden"),
    facts.Expired: (410, "Expired"),
    facts.NoResponse: (INTERNAL_ERROR, "InternalError"),
}


def build_error_response(outcome: facts.ErrorOutcome, **details: Json) -> ErrorResponse:
    """Return the response for an error outcome. `details`: the requested object and its kind."""
    match outcome:
        case facts.TooManyRequests():
            seconds = max(1, round(outcome.retry_after / SECOND))
            status = build_status(
                429, "TooManyRequests", outcome.message, retryAfterSeconds=seconds
            )
            return ErrorResponse(429, status, seconds)
        case facts.ServerError():
            return _error_response(
                outcome.status or INTERNAL_ERROR, outcome.reason, outcome.message
            )
        case facts.Invalid():
            code, reason = _invalid_code(outcome)
        case _:
            code, reason = STATUS_CODES[type(outcome)]
    if isinstance(outcome, facts.NotServed):
        details = {}  # details tell a client a missing object from a kind that is not served
    elif isinstance(outcome, facts.NotFound) and (
        match := _NOT_FOUND_MESSAGE.fullmatch(outcome.message)
    ):
        details = {"name": match["name"], "group": match["group"], "kind": match["plural"]}
    causes = outcome.causes if isinstance(outcome, facts.Invalid | facts.Forbidden) else ()
    causes = causes if code in {UNPROCESSABLE, FORBIDDEN} else ()
    encoded_causes = (
        _encode_owners(outcome) if isinstance(outcome, facts.Conflict) else _encode_causes(causes)
    )
    return _error_response(code, reason, outcome.message, causes=encoded_causes, **details)


def _invalid_code(outcome: facts.Invalid) -> tuple[int, str]:
    """Return code and reason. The message alone tells errors of decoders and typed merges."""
    if TYPED_PATCH_ERROR in outcome.message:
        return INTERNAL_ERROR, ""
    return (UNPROCESSABLE, "Invalid") if _is_validation_error(outcome) else (400, "BadRequest")


def _is_validation_error(outcome: facts.Invalid) -> bool:
    return bool(outcome.causes) and not outcome.message.startswith(STRICT_DECODING_ERROR)


def _error_response(code: int, reason: str, message: str, **details: Json) -> ErrorResponse:
    filled = {key: value for key, value in details.items() if value}
    return ErrorResponse(code, build_status(code, reason, message, **filled))


def _encode_causes(causes: tuple[facts.Cause, ...]) -> Json:
    return [{"reason": one.reason, "message": one.message, "field": one.field} for one in causes]


def _encode_owners(conflict: facts.Conflict) -> Json:
    return [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{one.manager}"',
            "field": f".{one.field}",
        }
        for one in conflict.owners
    ]
