"""States of units, as `argocd app list` and `flux get` show them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.units.unit import UnitId


class SyncStatus(StrEnum):
    """Whether the live objects of an Application are as in Git."""

    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"
    """Its manifests are not known."""


class Ready(StrEnum):
    """The condition `Ready` of a Flux unit."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class UnitState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of one unit: sync status and health, or for Flux whether it is ready."""

    unit: UnitId
    sync: str = ""
    health: str = ""
    ready: str = ""
    operation: str = ""
    """Phase of the last operation of an Application; empty without one."""
    retries: int = 0
    """Number of retries in that operation."""
