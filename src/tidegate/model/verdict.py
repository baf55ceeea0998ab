"""How an object is, as a rule judged it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Health(StrEnum):
    """The states that Argo CD's users know. Flux's words map onto them.

    Current is Healthy, InProgress is Progressing, Failed is Degraded, NotFound is Missing.
    """

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    SUSPENDED = "Suspended"
    MISSING = "Missing"
    UNKNOWN = "Unknown"


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """A state, a reason for programs, a sentence for people.

    `final`: nothing that the cluster does by itself will change the state. `speaks_of`: the
    generation that whoever wrote the status had seen, 0 where the object does not tell.
    `checked`: a rule looked at the status; where no rule knows the kind, none did. `starts`: it may
    be bad only because it is not up yet.
    """

    health: Health
    reason: str = ""
    sentence: str = ""
    final: bool = False
    speaks_of: int = 0
    checked: bool = True
    starts: bool = False
