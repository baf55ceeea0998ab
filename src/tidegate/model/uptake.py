"""What one unit does with a newer revision."""

from __future__ import annotations

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.unit import UnitId


class Uptake(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When a unit saw a newer revision, and from when to when it was synced to it.

    `committed`: when it came. `step`: that of its set. `ahead`: units of earlier steps that had not
    seen the revision when this one was synced. `stays`: why it was not brought, where it was not.
    """

    unit: UnitId
    committed: Ms
    seen: Ms
    step: int = 0
    began: Ms | None = None
    ended: Ms | None = None
    ahead: tuple[UnitId, ...] = ()
    stays: str = ""
