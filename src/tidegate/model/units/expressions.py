"""Health rules written as CEL expressions."""

from __future__ import annotations

import msgspec

from tidegate.errors import Location


class HealthExpressions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CEL expressions for the health of one kind.

    They are evaluated in this order: `in_progress`, `failed`, `current`.
    """

    group: str
    kind: str = ""
    """The kind. Empty for all kinds of the group."""
    current: str
    in_progress: str = ""
    failed: str = ""
    location: Location
