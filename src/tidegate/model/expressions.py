"""How an object is, said by expressions in CEL: as values, wherever they were written."""

from __future__ import annotations

import msgspec

from tidegate.errors import Place


class HealthExpressions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Expressions for the objects of one kind; with no `kind`, for all of the group.

    They are asked in this order: `in_progress`, `failed`, `current`.
    """

    group: str
    kind: str = ""
    current: str
    in_progress: str = ""
    failed: str = ""
    where: Place
