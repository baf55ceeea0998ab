"""Progress of a unit, the input of its status."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.k8s.verdict import Health
from tidegate.model.plans.drift import ObjectDrift
from tidegate.model.times import Ms
from tidegate.model.units.release_history import ReleaseSpec
from tidegate.model.units.source import Revision
from tidegate.model.units.unit import UnitId


class UnitPhase(StrEnum):
    """The phase of a unit in a rollout."""

    WAITING = "waits"
    """Waiting for other units."""
    RUNNING = "runs"
    FINISHED = "ended"


class ObjectResult(StrEnum):
    """The result of a rollout for an object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    PRUNED = "pruned"
    PRUNE_SKIPPED = "kept"
    """The object was a prune candidate, but was not deleted."""
    FAILED = "failed"
    NONE = "nothing"


class ObjectProgress(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result and health of one object of a unit."""

    ref: Ref
    phase: str = "sync"
    wave: int = 0
    is_hook: bool = False
    is_desired: bool = True
    """Whether the object is in Git."""
    in_sync: bool = False
    """Whether the live object matches Git."""
    requires_confirmation: bool = False
    """Whether its deletion requires a confirmation that is missing."""
    is_live: bool = False
    """Whether the object exists in the cluster."""
    is_awaited: bool = False
    """Whether a gate waits for it."""
    result: ObjectResult = ObjectResult.NONE
    health: Health | None = None
    """Its health. None if no rule knows its kind."""
    message: str = ""
    body: bytes = b""
    """The live body, or the desired body if the object does not exist."""
    drift: ObjectDrift | None = None
    """Changes that other writers had made to it."""


class UnitProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a unit during and after a rollout."""

    unit: UnitId
    phase: UnitPhase
    now: Ms
    started_at: Ms
    """Start time of the current operation."""
    digest: str = ""
    """Digest of the desired state in Git."""
    has_operation: bool = False
    """Whether the unit was operated on, not only compared."""
    result: str = ""
    """How the unit ended. Empty while it runs."""
    reason: str = ""
    """Machine-readable reason of the first failure."""
    message: str = ""
    """Message of the first failure."""
    is_gate_failure: bool = False
    """Whether the first failure is a gate that did not open."""
    is_test_failure: bool = False
    """Whether the first failure is a failed test."""
    is_valid: bool = True
    """Whether the unit could be started. If not, `code` and `field` describe the problem."""
    code: str = ""
    """Code of the finding that keeps the unit from starting."""
    field: str = ""
    """Field of the unit resource that the finding is about."""
    cycle: tuple[UnitId, ...] = ()
    """The units that wait for each other, if a dependency cycle is the problem."""
    retries: int = 0
    """Number of retries so far."""
    waits_for: tuple[UnitId, ...] = ()
    """Units that must finish first."""
    objects: tuple[ObjectProgress, ...] = ()
    release: ReleaseSpec | None = None
    """The Helm release that the unit is."""
    release_records: tuple[bytes, ...] = ()
    """Helm records of the release."""
    has_same_revision: bool = False
    """Whether the release keeps its current revision."""
    remediation_succeeded: bool | None = None
    """Whether the remediation of a failure succeeded. None if there was none."""


class SourceRevision(msgspec.Struct, frozen=True):
    """The revision of a source when it was rendered, and the tool that rendered it."""

    revision: Revision
    tool: str = ""


class StatusUpdate(msgspec.Struct, frozen=True):
    """The status to write to a unit resource, and the Events to send with it."""

    status: dict[str, Json]
    events: tuple[tuple[str, str, str], ...] = ()
    """Kubernetes Events: type, reason, message."""
