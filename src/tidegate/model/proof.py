"""What is known of an order after a rollout: pairs of steps, and the moments that decide."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Spot
from tidegate.model.plan import Because
from tidegate.model.unit import UnitId


class PairState(StrEnum):
    """What is known of two steps of which one had to wait for the other."""

    KEPT = "kept"
    BROKEN = "broken"
    UNPROVEN = "unproven"
    IDLE = "idle"
    """What comes behind did not begin, or wrote nothing."""


class Sighting(msgspec.Struct, frozen=True, gc=False):
    """An object as the cluster has it: when it was made, and last written by its manager.

    `ready`: since when it is well, as far as that is written down; `is_final`: that comes once.
    """

    made: Ms
    made_by: str = ""
    written: Ms | None = None
    ready: Ms | None = None
    is_final: bool = False


class Witness(msgspec.Struct, frozen=True, gc=False):
    """An object of a step, and a moment that the cluster tells: `made`, `written` or `ready`."""

    at: Ms
    step: str
    unit: UnitId
    spot: Spot
    what: str = "made"
    made_by: str = ""


class OrderPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two steps, `after` behind `before`: what the record tells of them, and what the cluster.

    `recorded` is None without a record, `seen` without a cluster. `passed` and `begun` are moments
    of the record; `first` and `then` are those of the cluster, and `why` says what they come to.
    """

    before: str
    after: str
    because: Because
    recorded: PairState | None = None
    passed: Ms | None = None
    begun: Ms | None = None
    seen: PairState | None = None
    first: Witness | None = None
    then: Witness | None = None
    why: str = ""

    @property
    def state(self) -> PairState:
        """Of both together: who contradicts counts, and then who proves."""
        known = {self.recorded, self.seen}
        order = (PairState.BROKEN, PairState.KEPT, PairState.UNPROVEN)
        return next((one for one in order if one in known), PairState.IDLE)
