"""Redundant syncs of a unit."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId


class Resync(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A further sync of a unit, because its controller did not notice the previous one."""

    unit: UnitId
    rollout_at: Ms = msgspec.field(name="stepAt")
    """When the unit was synced in the rollout."""
    at: Ms
    """When it is synced again."""
    hooks: tuple[Ref, ...] = ()
    """Hooks that run again. If empty, the sync changes nothing."""
    finished_at: Ms | None = None
    """When the hooks have finished."""
    passed: bool = True
