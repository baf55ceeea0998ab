"""The verdict on a simulated rollout: its outcome, and how much of the repository it rests on."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.units.unit import UnitId


class SimulationVerdict(StrEnum):
    """What a simulation shows."""

    PASSED = "passed"
    """Everything was rolled out and became healthy."""
    FAILED = "failed"
    """A unit failed, or was not ready at the time limit."""
    INVALID = "invalid"
    """Nothing was applied, because the cluster would reject objects of every unit."""
    DEGRADED = "degraded"
    """The engine was content, but an object that it does not wait for did not become healthy."""
    INCOMPLETE = "incomplete"
    """What was rolled out passed, but units were left out, or there was nothing to roll out."""


class LeftOut(msgspec.Struct, frozen=True):
    """Units that were not rolled out, for the same reason."""

    reason: str
    units: tuple[UnitId, ...]
