"""Verification of the order of a finished rollout."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.plans.verification import OrderPair, PairState
from tidegate.model.rollouts.run import RunHead
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId


class UnitVerification(msgspec.Struct, frozen=True):
    """Verified order of a unit. Unknown values are None."""

    unit: UnitId
    wave: int | None
    is_synced: bool | None
    """Whether the unit is in sync with Git."""
    started_at: Ms | None
    ready_at: Ms | None
    order: PairState | None
    """State of the order; None for a unit that waits for no other."""


class OrderVerification(msgspec.Struct, frozen=True):
    """Verified order of a rollout."""

    head: RunHead
    pairs: tuple[OrderPair, ...]
    units: tuple[UnitVerification, ...]
    missing: tuple[ClusterRef, ...] = ()
    """Objects that should exist and do not."""
    is_recorded: bool = False

    def pairs_in_state(self, state: PairState) -> list[OrderPair]:
        return [pair for pair in self.pairs if pair.state is state]

    @property
    def is_broken(self) -> bool:
        return bool(self.pairs_in_state(PairState.VIOLATED))

    @property
    def verdict(self) -> str:
        if self.is_broken:
            return "broken"
        if self.missing:
            return "missing"
        return "unproven" if self.pairs_in_state(PairState.UNPROVEN) else "kept"
