"""A unit that is synced once more than it should be."""

from __future__ import annotations

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.unit import UnitId


class Resync(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A further sync of a unit, since nobody noticed the one before it.

    `turn`: when the unit had its turn. `at`: when it is synced again. `hooks`: what that runs once
    more, which has `ended` then; without any, the sync changes nothing.
    """

    unit: UnitId
    turn: Ms
    at: Ms
    hooks: tuple[Ref, ...] = ()
    ended: Ms | None = None
    passed: bool = True
