"""Error responses: an HTTP status with a `Status` object.

Like `pkg/api/errors/errors.go` of k8s.io/apimachinery 0.36.4 and `ErrorToAPIStatus` in
`pkg/endpoints/handlers/responsewriters/status.go` of k8s.io/apiserver 0.36.4.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import SECOND
from tidegate.world import messages

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
    """HTTP status."""
    body: JsonObject
    """The `Status` object."""
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


STATUS_CODES: dict[type[messages.ErrorOutcome], tuple[int, str]] = {
    messages.NotFound: (404, "NotFound"),
    messages.NotServed: (404, "NotFound"),
    messages.AlreadyExists: (409, "AlreadyExists"),
    messages.Conflict: (409, "Conflict"),
    messages.Forbidden: (FORBIDDEN, "Forbidden"),
    messages.Expired: (410, "Expired"),
    messages.NoResponse: (INTERNAL_ERROR, "InternalError"),
}


def build_error_response(outcome: messages.ErrorOutcome, **details: Json) -> ErrorResponse:
    """Return the response for an error outcome. `details`: the requested object and its kind."""
    match outcome:
        case messages.TooManyRequests():
            seconds = max(1, round(outcome.retry_after / SECOND))
            status = build_status(
                429, "TooManyRequests", outcome.message, retryAfterSeconds=seconds
            )
            return ErrorResponse(429, status, seconds)
        case messages.ServerError():
            return _error_response(
                outcome.status or INTERNAL_ERROR, outcome.reason, outcome.message
            )
        case messages.Invalid():
            code, reason = _invalid_code(outcome)
        case _:
            code, reason = STATUS_CODES[type(outcome)]
    if isinstance(outcome, messages.NotServed):
        details = {}  # with details, a client would take it for a missing object
    elif isinstance(outcome, messages.NotFound) and (
        match := _NOT_FOUND_MESSAGE.fullmatch(outcome.message)
    ):
        details = {"name": match["name"], "group": match["group"], "kind": match["plural"]}
    causes = outcome.causes if isinstance(outcome, messages.Invalid | messages.Forbidden) else ()
    causes = causes if code in {UNPROCESSABLE, FORBIDDEN} else ()
    encoded_causes = (
        _encode_owners(outcome)
        if isinstance(outcome, messages.Conflict)
        else _encode_causes(causes)
    )
    return _error_response(code, reason, outcome.message, causes=encoded_causes, **details)


def _invalid_code(outcome: messages.Invalid) -> tuple[int, str]:
    """Return code and reason. Only the message identifies errors of decoders and typed merges."""
    if TYPED_PATCH_ERROR in outcome.message:
        return INTERNAL_ERROR, ""
    return (UNPROCESSABLE, "Invalid") if _is_validation_error(outcome) else (400, "BadRequest")


def _is_validation_error(outcome: messages.Invalid) -> bool:
    return bool(outcome.causes) and not outcome.message.startswith(STRICT_DECODING_ERROR)


def _error_response(code: int, reason: str, message: str, **details: Json) -> ErrorResponse:
    filled = {key: value for key, value in details.items() if value}
    return ErrorResponse(code, build_status(code, reason, message, **filled))


def _encode_causes(causes: tuple[messages.Cause, ...]) -> Json:
    return [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]


def _encode_owners(conflict: messages.Conflict) -> Json:
    return [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{owner.manager}"',
            "field": f".{owner.field}",
        }
        for owner in conflict.owners
    ]
