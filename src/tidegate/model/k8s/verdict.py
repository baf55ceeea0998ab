"""Health of an object, as a rule evaluates it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Health(StrEnum):
    """Argo CD's health states. The states of kstatus map to them.

    Current is Healthy, InProgress is Progressing, Failed is Degraded, NotFound is Missing.
    """

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    SUSPENDED = "Suspended"
    MISSING = "Missing"
    UNKNOWN = "Unknown"


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """A health state, a reason for programs, and a message for people."""

    health: Health
    reason: str = ""
    message: str = ""
    is_final: bool = False
    """Whether the cluster will not change the state by itself."""
    observed_generation: int = 0
    """The generation that the writer of the status had observed. 0 if unknown."""
    is_checked: bool = True
    """Whether a rule evaluated the status. False if no rule knows the kind."""
    is_starting: bool = False
    """Whether the state may be bad only because the object is still starting."""
