"""Messages from a World.

Message         Response | WatchEvent | Bookmark | WatchEnded | TimerFired
Outcome         of a response: Success | ListPage | ApiResources | RawResponse, or an ErrorOutcome
ErrorOutcome    Conflict | Invalid | Forbidden | NotFound | AlreadyExists | NotServed
                | TooManyRequests | Expired | ServerError | NoResponse
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeGuard

import msgspec

from tidegate.model.k8s.objects import LiveObject, ServedKind
from tidegate.model.times import Ms
from tidegate.world.requests import RequestId


class Success(msgspec.Struct, frozen=True):
    """The request succeeded."""

    live: LiveObject | None = None
    """The object; None after a deletion that took effect at once."""
    warnings: tuple[str, ...] = ()


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list."""

    items: tuple[LiveObject, ...]
    resource_version: str
    """Resource version of the list."""
    continue_token: str = ""
    """Continue token of the next page; empty on the last page."""


class ApiResources(msgspec.Struct, frozen=True):
    """The kinds that a cluster serves, the preferred version of each group first."""

    kinds: tuple[ServedKind, ...]


class RawResponse(msgspec.Struct, frozen=True):
    """Raw bytes: logs, an API path, or the result of a worker."""

    body: bytes


class FieldOwner(msgspec.Struct, frozen=True, order=True):
    """A field that another field manager owns."""

    manager: str
    field: str


class Cause(msgspec.Struct, frozen=True, order=True):
    """A problem with one field."""

    field: str
    reason: str
    message: str


class Conflict(msgspec.Struct, frozen=True):
    """Another manager owns fields of the write, or a precondition does not match."""

    message: str
    owners: tuple[FieldOwner, ...] = ()
    """The owned fields; empty if a UID or a resource version did not match."""


class Invalid(msgspec.Struct, frozen=True):
    """The server rejects the object (422, or 400 for a body that cannot be decoded)."""

    message: str
    causes: tuple[Cause, ...] = ()


class Forbidden(msgspec.Struct, frozen=True):
    """The request is not allowed (403)."""

    message: str
    causes: tuple[Cause, ...] = ()


class NotFound(msgspec.Struct, frozen=True):
    """The object does not exist (404)."""

    message: str


class AlreadyExists(msgspec.Struct, frozen=True):
    """The object already exists (409 AlreadyExists)."""

    message: str


class NotServed(msgspec.Struct, frozen=True):
    """The cluster does not serve the kind, or does not serve it yet."""

    message: str


class TooManyRequests(msgspec.Struct, frozen=True):
    """The server rejected the request without processing it (429), and says when to retry."""

    message: str
    retry_after: Ms


class Expired(msgspec.Struct, frozen=True):
    """The resource version is no longer available (410): list again."""

    message: str


class ServerError(msgspec.Struct, frozen=True):
    """Any other error, with the status and reason of the server."""

    status: int
    reason: str
    message: str
    retry_after: Ms | None = None


class Delivery(StrEnum):
    """Whether a call without a response may have taken effect."""

    NOT_SENT = "no"
    MAYBE_SENT = "maybe"


class LossReason(StrEnum):
    """Why there was no response."""

    CONNECTION_REFUSED = "refused"
    UNKNOWN_HOST = "unknown-host"
    UNTRUSTED = "untrusted"
    PROXY = "proxy"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    CREDENTIALS = "credentials"
    CREDENTIALS_TIMEOUT = "hanging"
    """The exec plugin that provides credentials did not finish in time."""
    CANCELLED = "withdrawn"
    DEADLINE_PASSED = "late"
    """The deadline passed before the call was sent."""


class NoResponse(msgspec.Struct, frozen=True):
    """There was no response."""

    delivery: Delivery
    reason: LossReason
    message: str
    hint: str = ""


ErrorOutcome = (
    Conflict
    | Invalid
    | Forbidden
    | NotFound
    | AlreadyExists
    | NotServed
    | TooManyRequests
    | Expired
    | ServerError
    | NoResponse
)
Outcome = Success | ListPage | ApiResources | RawResponse | ErrorOutcome


def is_error(outcome: Outcome) -> TypeGuard[ErrorOutcome]:
    """Return whether an outcome is an error."""
    return not isinstance(outcome, Success | ListPage | ApiResources | RawResponse)


class WatchEventType(StrEnum):
    """Type of a watch event."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class Response(msgspec.Struct, frozen=True):
    """The outcome of a call. `ResilientWorld` answers a watch once its initial list is complete."""

    request_id: RequestId
    outcome: Outcome


class WatchEvent(msgspec.Struct, frozen=True):
    """A change of an object in a watch. A deleted object has its last state."""

    request_id: RequestId
    type: WatchEventType
    live: LiveObject


class Bookmark(msgspec.Struct, frozen=True):
    """Mark in a watch: no event up to this resource version is missing."""

    request_id: RequestId
    resource_version: str


class WatchEnded(msgspec.Struct, frozen=True):
    """The end of a watch: closed by the server (no outcome), rejected, or disconnected."""

    request_id: RequestId
    outcome: ErrorOutcome | None = None


class TimerFired(msgspec.Struct, frozen=True):
    """The time of a wait has passed without any other message."""


Message = Response | WatchEvent | Bookmark | WatchEnded | TimerFired
