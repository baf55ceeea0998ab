"""Sync of a unit to a new revision."""

from __future__ import annotations

import msgspec

from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId


class RevisionSync(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """When a unit detected a new revision, and when it was synced to it."""

    unit: UnitId
    committed_at: Ms
    """When the revision was committed."""
    detected_at: Ms
    step: int = 0
    """The step of its ApplicationSet."""
    started_at: Ms | None = None
    finished_at: Ms | None = None
    outdated_predecessors: tuple[UnitId, ...] = ()
    """Units of earlier steps that had not detected the revision when this unit was synced."""
    not_synced_reason: str = ""
    """Why the unit was not synced."""
