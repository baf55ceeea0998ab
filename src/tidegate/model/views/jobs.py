"""Jobs and hooks of units."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A Job or hook with its step and its status in the cluster."""

    unit: UnitId
    step: str
    ref: Ref
    is_hook: bool
    status: str = ""
    """Status in the cluster; empty if the object does not exist."""
    finished: Ms | None = None
