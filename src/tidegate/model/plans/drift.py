"""Drift: changes of other writers to an object, and how they were handled."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId


class ObjectDrift(msgspec.Struct, frozen=True, gc=False):
    """Changes of other writers to an object, and the number of fields that differ."""

    message: str
    """Description of the changes."""
    is_deleted: bool = False
    """Whether the object was deleted."""
    added: int = 0
    changed: int = 0
    removed: int = 0


class Drift(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An object of a unit that no longer matches Git."""

    unit: UnitId
    ref: Ref
    detected_at: Ms = msgspec.field(name="at")
    """When the drift occurred, on the clock of the world."""
    message: str
    cluster: str = ""
    healed_at: Ms | None = None
    """When the object was in sync again. None if it was not healed."""
    not_healed_reason: str = ""
    """Why the drift was not healed."""
    attempts: int = 0
    """Number of attempts to heal it."""
