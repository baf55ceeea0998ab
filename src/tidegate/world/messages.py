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
    """The outcome of a successful read or write."""

    live: LiveObject | None = None
    """The object; None after a deletion that took effect at once."""
    warnings: tuple[str, ...] = ()
    """Warnings of the server."""


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list."""

    items: tuple[LiveObject, ...]
    """The objects of the page."""
    resource_version: str
    """Resource version of the list."""
    continue_token: str = ""
    """Continue token of the next page; empty on the last page."""


class ApiResources(msgspec.Struct, frozen=True):
    """The kinds that a cluster serves, the preferred version of each group first."""

    kinds: tuple[ServedKind, ...]
    """The served kinds."""


class RawResponse(msgspec.Struct, frozen=True):
    """Raw bytes: logs, an API path, or the result of a worker."""

    body: bytes
    """The bytes."""


class FieldOwner(msgspec.Struct, frozen=True, order=True):
    """A field that another field manager owns."""

    manager: str
    """The field manager."""
    field: str
    """The owned field, as the server names it."""


class Cause(msgspec.Struct, frozen=True, order=True):
    """A problem with one field."""

    field: str
    """The field, as the server names it."""
    reason: str
    """Reason for programs."""
    message: str
    """Message for people."""


class Conflict(msgspec.Struct, frozen=True):
    """A conflict (409).

    Another manager owns fields of the write, or a precondition does not match.
    """

    message: str
    """Message of the server."""
    owners: tuple[FieldOwner, ...] = ()
    """The owned fields; empty if a UID or a resource version did not match."""


class Invalid(msgspec.Struct, frozen=True):
    """A rejection of the object (422, or 400 for a body that cannot be decoded)."""

    message: str
    """Message of the server."""
    causes: tuple[Cause, ...] = ()
    """Problems by field."""


class Forbidden(msgspec.Struct, frozen=True):
    """A request that is not allowed (403)."""

    message: str
    """Message of the server."""
    causes: tuple[Cause, ...] = ()
    """Problems by field."""


class NotFound(msgspec.Struct, frozen=True):
    """A request for an object that does not exist (404)."""

    message: str
    """Message of the server."""


class AlreadyExists(msgspec.Struct, frozen=True):
    """A creation of an object that already exists (409 AlreadyExists)."""

    message: str
    """Message of the server."""


class NotServed(msgspec.Struct, frozen=True):
    """A request for a kind that the cluster does not serve, or does not serve yet."""

    message: str
    """Message of the server."""


class TooManyRequests(msgspec.Struct, frozen=True):
    """A request that the server rejected because of its load, without processing it (429)."""

    message: str
    """Message of the server."""
    retry_after: Ms
    """Delay that the server requests before a retry."""


class Expired(msgspec.Struct, frozen=True):
    """A request with a resource version that is no longer available (410): list again."""

    message: str
    """Message of the server."""


class ServerError(msgspec.Struct, frozen=True):
    """Any other error, with the status and reason of the server."""

    status: int
    """HTTP status."""
    reason: str
    """Reason of the server."""
    message: str
    """Message of the server."""
    retry_after: Ms | None = None
    """Delay that the server requests before a retry; None for none."""


class Delivery(StrEnum):
    """The possible effect of a call without a response."""

    NOT_SENT = "no"
    MAYBE_SENT = "maybe"


class LossReason(StrEnum):
    """The reason for a missing response."""

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
    """A call without a response."""

    delivery: Delivery
    """Whether the call may have taken effect."""
    reason: LossReason
    """Why there was no response."""
    message: str
    """Message for people."""
    hint: str = ""
    """Hint for the user."""


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
    """The id of the call."""
    outcome: Outcome
    """The outcome of the call."""


class WatchEvent(msgspec.Struct, frozen=True):
    """A change of an object in a watch. A deleted object has its last state."""

    request_id: RequestId
    """The id of the watch."""
    type: WatchEventType
    """The type of the change."""
    live: LiveObject
    """The object after the change."""


class Bookmark(msgspec.Struct, frozen=True):
    """Mark in a watch: no event up to this resource version is missing."""

    request_id: RequestId
    """The id of the watch."""
    resource_version: str
    """The resource version up to which the events are complete."""


class WatchEnded(msgspec.Struct, frozen=True):
    """The end of a watch: closed by the server (no outcome), rejected, or disconnected."""

    request_id: RequestId
    """The id of the watch."""
    outcome: ErrorOutcome | None = None
    """The error; None if the server closed the stream."""


class TimerFired(msgspec.Struct, frozen=True):
    """The end of a wait whose time has passed without any other message."""


Message = Response | WatchEvent | Bookmark | WatchEnded | TimerFired
