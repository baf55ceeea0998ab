"""What comes back from a world.

Fact        Answer | Changed | Bookmark | Ended | Due
Outcome     of an answer: Done | Listed | Catalogue | Said, or a Refusal
Refusal     Conflict | Invalid | Forbidden | Missing | Exists | NotServed | Throttled | Expired
            | Failed | Lost
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeGuard

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Live, Served
from tidegate.world.calls import Ticket


class Done(msgspec.Struct, frozen=True):
    """It is so. A deletion that took effect at once leaves nothing to show."""

    live: Live | None = None
    warnings: tuple[str, ...] = ()


class Listed(msgspec.Struct, frozen=True):
    """A page of a list, as of `version`; `resume` asks for the next one, empty on the last."""

    items: tuple[Live, ...]
    version: str
    resume: str = ""


class Catalogue(msgspec.Struct, frozen=True):
    """The kinds a cluster serves, each group's preferred version first."""

    kinds: tuple[Served, ...]


class Said(msgspec.Struct, frozen=True):
    """The answer to what is no object: logs, a path, local work."""

    body: bytes


class Owned(msgspec.Struct, frozen=True, order=True):
    """A field that another manager owns."""

    manager: str
    field: str


class Cause(msgspec.Struct, frozen=True, order=True):
    """One thing wrong with one field."""

    field: str
    reason: str
    message: str


class Conflict(msgspec.Struct, frozen=True):
    """Somebody else owns what the call wants, or the object is no longer the one it speaks of.

    `managers` is empty where a uid or a version did not match.
    """

    message: str
    managers: tuple[Owned, ...] = ()


class Invalid(msgspec.Struct, frozen=True):
    message: str
    causes: tuple[Cause, ...] = ()


class Forbidden(msgspec.Struct, frozen=True):
    message: str
    causes: tuple[Cause, ...] = ()


class Missing(msgspec.Struct, frozen=True):
    message: str


class Exists(msgspec.Struct, frozen=True):
    message: str


class NotServed(msgspec.Struct, frozen=True):
    """The cluster does not know the kind (yet)."""

    message: str


class Throttled(msgspec.Struct, frozen=True):
    """The server did not look at the call, and says when to ask again."""

    message: str
    after: Ms


class Expired(msgspec.Struct, frozen=True):
    """The version asked for is no longer remembered: list again."""

    message: str


class Failed(msgspec.Struct, frozen=True):
    """Any other answer, with the server's status and reason."""

    status: int
    reason: str
    message: str
    after: Ms | None = None


class Sent(StrEnum):
    """Whether a call that got no answer may have taken effect."""

    NO = "no"
    MAYBE = "maybe"


class Loss(StrEnum):
    """How an answer was lost."""

    REFUSED = "refused"
    UNKNOWN_HOST = "unknown-host"
    UNTRUSTED = "untrusted"
    PROXY = "proxy"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    CREDENTIALS = "credentials"
    HANGING = "hanging"
    """Whoever is to give credentials did not come to an end."""
    WITHDRAWN = "withdrawn"
    LATE = "late"
    """The moment had passed until which it was to be sent."""


class Lost(msgspec.Struct, frozen=True):
    """No answer came."""

    sent: Sent
    reason: Loss
    message: str
    hint: str = ""


Refusal = (
    Conflict
    | Invalid
    | Forbidden
    | Missing
    | Exists
    | NotServed
    | Throttled
    | Expired
    | Failed
    | Lost
)
Outcome = Done | Listed | Catalogue | Said | Refusal


def is_refusal(outcome: Outcome) -> TypeGuard[Refusal]:
    return not isinstance(outcome, Done | Listed | Catalogue | Said)


class Change(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class Answer(msgspec.Struct, frozen=True):
    """What became of a call. On a line, a watch is answered once its view is whole."""

    ticket: Ticket
    outcome: Outcome


class Changed(msgspec.Struct, frozen=True):
    """An object of a watch changed; a deleted one is told in its last state."""

    ticket: Ticket
    change: Change
    live: Live


class Bookmark(msgspec.Struct, frozen=True):
    """Nothing of this watch is missing up to this version."""

    ticket: Ticket
    version: str


class Ended(msgspec.Struct, frozen=True):
    """A watch is over: the server closed it (no outcome), or it was refused or lost."""

    ticket: Ticket
    outcome: Refusal | None = None


class Due(msgspec.Struct, frozen=True):
    """The moment that was waited for has come, and nothing else has."""


Fact = Answer | Changed | Bookmark | Ended | Due
