"""Something said about a repository: what, where, why, and what to do."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.errors import Place


class Severity(StrEnum):
    ERROR = "error"
    """It cannot work."""
    WARNING = "warning"
    """It may not work, or not as it seems."""
    NOTE = "note"
    """It works; somebody should know."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A code, how bad it is, its place, a sentence; why that is so, and what to do.

    `semantics`: under whose rules it bites; empty is under everybody's. `story`: what happens, one
    thing after another. `also`: other places that it is about. `paste`: a text to be pasted.
    `about`: the units in whose text it is, by kind, namespace and name, where several may come of
    one place.
    """

    code: str
    severity: Severity
    sentence: str
    where: Place | None = None
    why: str = ""
    fix: str = ""
    semantics: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    also: tuple[Place, ...] = ()
    paste: str = ""
    about: tuple[str, ...] = ()
