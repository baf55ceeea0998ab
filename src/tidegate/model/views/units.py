"""Units with their waves."""

from __future__ import annotations

import msgspec

from tidegate.model.units.unit import Unit


class UnitRow(msgspec.Struct, frozen=True):
    """A unit with its position in the tree of units."""

    unit: Unit
    wave: int | None
    """Wave of the unit resource in its parent."""
    depth: int
    object_count: int | None = None
    """Number of objects; None if they were not counted."""
    is_faulty: bool = False
    """Whether the unit could not be rendered."""
