"""Suspensions of units, stored as ConfigMaps."""

from __future__ import annotations

from tidegate.engine.stored import (
    CONFIG_MAP,
    MARKER_VALUE,
    TIDEGATE_NAMESPACE,
    resource_name,
    store_marker,
)
from tidegate.model.objects import Ref
from tidegate.world.calls import Selection, Write

SUSPENDED_LABEL = "tidegate.dev/suspended"
SUSPENSIONS = Selection(
    CONFIG_MAP, TIDEGATE_NAMESPACE, label_selector=f"{SUSPENDED_LABEL}={MARKER_VALUE}"
)
"""Selects the suspensions of all units of a cluster."""


def suspension_ref(unit: str) -> Ref:
    """Return the reference of the suspension of a unit."""
    return Ref(CONFIG_MAP, TIDEGATE_NAMESPACE, f"{resource_name(unit)}.suspended")


def build_suspension(unit: str, by: str) -> Write:
    """Return the write that suspends a unit until it is resumed."""
    return store_marker(suspension_ref(unit), unit, SUSPENDED_LABEL, {"by": by})
