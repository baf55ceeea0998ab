"""Evidence of the order of a finished rollout: pairs of steps, and the times that decide."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.plans.plan import EdgeReason
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId


class PairState(StrEnum):
    """The evidence for two steps, one of which had to wait for the other."""

    RESPECTED = "kept"
    VIOLATED = "broken"
    UNPROVEN = "unproven"
    IDLE = "idle"
    """The later step did not start, or wrote nothing."""


class ObservedObject(msgspec.Struct, frozen=True, gc=False):
    """The times that a cluster recorded for an object: creation, last write, readiness."""

    created_at: Ms
    created_by: str = ""
    written_at: Ms | None = None
    ready_at: Ms | None = None
    """Since when it is healthy, if recorded."""
    is_final: bool = False
    """Whether it becomes ready only once."""


class OrderEvidence(msgspec.Struct, frozen=True, gc=False):
    """A recorded timestamp of an object of a step: `made`, `written` or `ready`."""

    at: Ms
    step: str
    unit: UnitId
    object: ClusterRef
    event: str = "created"
    created_by: str = ""


class OrderPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two steps in order, with the evidence of the run record and of the cluster."""

    before: str
    after: str
    reason: EdgeReason
    recorded: PairState | None = None
    """The state by the run record. None without a record."""
    passed_at: Ms | None = None
    """When `before` passed, by the record."""
    started_at: Ms | None = None
    """When `after` started, by the record."""
    observed: PairState | None = None
    """The state by the cluster. None without a cluster."""
    before_evidence: OrderEvidence | None = None
    """The evidence of the cluster for `before`."""
    after_evidence: OrderEvidence | None = None
    """The evidence of the cluster for `after`."""
    explanation: str = ""
    """Explanation of the state by the cluster."""

    @property
    def state(self) -> PairState:
        """The combined state: a violation wins, then a proof."""
        known = {self.recorded, self.observed}
        order = (PairState.VIOLATED, PairState.RESPECTED, PairState.UNPROVEN)
        return next((state for state in order if state in known), PairState.IDLE)
