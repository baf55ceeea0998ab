"""Inputs of `decide` (`Input`) and the commands that it returns (`Command`)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import ClusterRef, Propagation, Ref
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.plans.change import FieldChange
from tidegate.model.plans.drift import ObjectDrift
from tidegate.model.plans.plan import Plan, PlanFragment, PlanItem
from tidegate.model.rollouts.event import Event
from tidegate.model.times import Ms
from tidegate.model.units.release_history import HookRun, RevisionOutcome
from tidegate.model.units.unit import UnitId


class CompareResult(StrEnum):
    """Result of comparing a desired object with the live object."""

    ABSENT = "absent"
    DIFFERENT = "different"
    IMMUTABLE = "immutable"
    """The object differs in immutable fields."""
    RECREATE = "obsolete"
    """The live object must be deleted and created again."""
    IN_SYNC = "same"
    UNMANAGED = "left"
    """The manifest or the live object opts out of management."""
    FINISHED = "finished"
    """The object finished with this manifest and removed itself."""


class WrittenObject(msgspec.Struct, frozen=True, gc=False):
    """An object as a write returned it, or as a comparison found it in sync."""

    uid: str
    generation: int
    version: str
    status_digest: str = ""
    """Digest of the status at that time; empty for kinds whose fence does not need it."""
    changed: bool = False
    """Whether our write changed the object."""
    trusted: bool = False
    """Whether an unchanged object is known to have a status that refers to this manifest."""
    has_passed: bool = False
    """Whether its gate has opened for this manifest before."""


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """Result of comparing one manifest with the live object."""

    result: CompareResult
    immutable_fields: tuple[str, ...] = ()
    """Fields that differ and are immutable."""
    replaces: bool = False
    """Whether the write replaces the whole live object instead of applying fields."""
    fields: tuple[FieldChange, ...] = ()
    """Fields that differ."""


class ComparedObject(msgspec.Struct, frozen=True, gc=False):
    """One object of a step with its `Comparison`."""

    object_ref: ClusterRef
    result: CompareResult
    live: WrittenObject | None = None
    immutable_fields: tuple[str, ...] = ()
    replaces: bool = False
    fields: tuple[FieldChange, ...] = ()
    drift: ObjectDrift | None = None
    """Changes made by others, if the unit detects drift."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why an action failed."""

    reason: str
    message: str
    final: bool = False
    """Whether a retry is pointless."""
    field_messages: tuple[tuple[str, str], ...] = ()
    """Field and message of each cause, if the failure is about fields."""
    ref: Ref | None = None
    """The object that failed, if the message names one."""
    is_unknown: bool = False
    """Whether the action may have been done all the same."""


class RolloutStarted(msgspec.Struct, frozen=True):
    """Input: the plan is prepared and the rollout starts."""

    plan: Plan
    excluded: dict[UnitId, Failure] = {}
    """Units that cannot be started, with the reason."""
    due_units: tuple[UnitId, ...] = ()
    """Units with work to do; each must be leased before it starts."""
    units_in_progress: tuple[UnitId, ...] = ()
    """Units that an earlier process started and that already have their slots."""


class LeaseAcquired(msgspec.Struct, frozen=True):
    """Input: the lease of a unit was acquired."""

    unit: UnitId
    plan: Plan | None = None
    """The new plan of the unit, if another process changed the unit in the meantime."""
    failure: Failure | None = None


class LeaseRequested(msgspec.Struct, frozen=True):
    """Input: another rollout of the same plan waits for a unit, as this rollout does."""

    unit: UnitId


class StepCompared(msgspec.Struct, frozen=True):
    """Input: the objects of a step were compared with the live ones, or one is invalid."""

    step: str
    objects: tuple[ComparedObject, ...] = ()
    failure: Failure | None = None


class PreflightFailed(msgspec.Struct, frozen=True, gc=False):
    """Input: an object of a later step would be rejected."""

    step: str
    digest: str
    """Digest of the step that was checked."""
    failure: Failure


class WriteFinished(msgspec.Struct, frozen=True, gc=False):
    """Input: an apply or a delete finished."""

    step: str
    object_ref: ClusterRef
    outcome: WrittenObject | Failure | None
    """The written object, the failure, or None if the object is deleted."""


class Override(msgspec.Struct, frozen=True, gc=False):
    """A field that another client set, by which no pod runs the applied template."""

    message: str
    is_certain: bool = True
    """Whether the client had no right to set it: no autoscaler is known to do that."""
    is_scale: bool = False
    """Whether the field is the number of replicas."""


DELETING = "being deleted"
"""Deletion of an object that no foreign finalizer keeps."""


class HealthChanged(msgspec.Struct, frozen=True, gc=False):
    """Input: a health verdict about one version of one object."""

    object_ref: ClusterRef
    uid: str
    generation: int
    version: str
    verdict: Verdict
    status_digest: str = ""
    """Digest of the status that was evaluated."""
    deletion: str = ""
    """What the object still waits for if it is being deleted; else empty."""
    override: Override | None = None
    """The field of others by which it is healthy without running the applied template."""


class ObjectDeleted(msgspec.Struct, frozen=True, gc=False):
    """Input: an object was deleted."""

    object_ref: ClusterRef
    uid: str


class StepExpanded(msgspec.Struct, frozen=True):
    """Input: an expanding step returned further steps, or failed."""

    step: str
    outcome: PlanFragment | Failure
    due_units: tuple[UnitId, ...] = ()
    """Units with work to do; each must be leased before it starts."""


class ClusterAnswered(msgspec.Struct, frozen=True, gc=False):
    """Input: a cluster answers again. Nothing was known of its objects meanwhile."""

    cluster: str
    silence: Ms
    """How long it did not answer."""


class ProbeFinished(msgspec.Struct, frozen=True, gc=False):
    """Input: the probe of an object finished."""

    step: str
    object_ref: ClusterRef
    failure: Failure | None = None
    """Why the object does not serve yet; None if it serves."""


class VerifyFinished(msgspec.Struct, frozen=True, gc=False):
    """Input: a later version of an object was compared with what was written.

    The version is identified by `uid`, `generation` and `version`.
    """

    step: str
    object_ref: ClusterRef
    uid: str
    generation: int
    version: str
    failure: Failure | None = None
    """Which written fields have changed; None if the object still has all of them."""


class StatusRead(msgspec.Struct, frozen=True, gc=False):
    """Input: the objects of a step were read again.

    Their health changes were sent before this input.
    """

    step: str


class JournalSaved(msgspec.Struct, frozen=True, gc=False):
    """Input: a `SaveJournal` command that had to be awaited is done."""

    step: str


class HooksDeleted(msgspec.Struct, frozen=True):
    """Input: the hooks of a finished unit were released."""

    unit: UnitId
    deleted_hooks: tuple[ClusterRef, ...] = ()
    """Hooks that were deleted."""


class PlanSuperseded(msgspec.Struct, frozen=True):
    """Input: a newer plan replaces the current one. No step starts until that plan is known."""

    plan: Plan | None
    """The newer plan; None while it is being prepared."""
    due_units: tuple[UnitId, ...] = ()
    """Units with work to do; each must be leased before it starts."""
    excluded: dict[UnitId, Failure] = {}
    """Units of the newer plan that cannot be started, with the reason."""


class StopRequested(msgspec.Struct, frozen=True):
    """Input: start no new write, of one unit or of all units."""

    reason: str
    """Reason of the stop, with who requested it."""
    unit: UnitId | None = None
    """The unit to stop; None stops all units."""


class ApprovalGranted(msgspec.Struct, frozen=True):
    """Input: a step was approved at its barrier, or a unit with all of its barriers."""

    step: str = ""
    unit: UnitId | None = None


class RefreshFinished(msgspec.Struct, frozen=True):
    """Input: the source of a unit has nothing newer, or nothing usable."""

    unit: UnitId
    failure: Failure | None = None
    """Why a newer revision that is required cannot be used."""


class TimerElapsed(msgspec.Struct, frozen=True):
    """Input: the next timer of the rollout elapsed."""


ObjectInput = (
    StepCompared
    | WriteFinished
    | HealthChanged
    | ObjectDeleted
    | StatusRead
    | ProbeFinished
    | VerifyFinished
)
ControlInput = (
    RolloutStarted
    | StepExpanded
    | PlanSuperseded
    | StopRequested
    | ApprovalGranted
    | RefreshFinished
    | TimerElapsed
)
Input = (
    ObjectInput
    | ControlInput
    | LeaseAcquired
    | LeaseRequested
    | ClusterAnswered
    | PreflightFailed
    | JournalSaved
    | HooksDeleted
)


class AcquireLease(msgspec.Struct, frozen=True):
    """Command: acquire the lease of a unit, however long that takes."""

    unit: UnitId
    is_needed: bool
    """Whether a step of the unit could start now."""
    is_unstarted: bool
    """Whether no step has started yet.

    Such a unit is prepared again if another process changed it.
    """


class ReleaseLease(msgspec.Struct, frozen=True):
    """Command: release the lease of a unit, or stop waiting for it, until it is requested again."""

    unit: UnitId


class AwaitApproval(msgspec.Struct, frozen=True):
    """Command: report approvals of a unit, including one that already exists."""

    unit: UnitId


class Refresh(msgspec.Struct, frozen=True):
    """Command: look for a newer revision in the source of a unit.

    A newer plan supersedes this one.
    """

    unit: UnitId
    failure: RevisionOutcome | None = None
    """Outcome of the failed attempt."""
    hooks: tuple[HookRun, ...] = ()
    """Results of the hooks that ran because of the failure."""
    is_last: bool = False
    """Whether all steps have passed and the rollout ends unless there is something newer."""


class CompareStep(msgspec.Struct, frozen=True):
    """Command: compare the objects of a step with the live ones and validate unchecked ones."""

    step: str
    outcome: RevisionOutcome | None = None
    """Outcome of the release revision, for steps that run after it: tests, on-failure steps."""
    takes_slot: bool = False
    """Whether the unit occupies a slot of its group until it ends."""


class Preflight(msgspec.Struct, frozen=True):
    """Command: an object now serves what it promised; validate the objects that waited for it."""

    object_ref: ClusterRef


class Apply(msgspec.Struct, frozen=True):
    """Command: write an object."""

    step: str
    object_ref: ClusterRef
    item: PlanItem
    urgent: bool = False
    """Whether this is the first write of a step."""


class Delete(msgspec.Struct, frozen=True):
    """Command: delete an object."""

    step: str
    object_ref: ClusterRef
    uid: str
    propagation: Propagation


class ReadStatus(msgspec.Struct, frozen=True):
    """Command: read these objects again, because time is up and the cached state may be old."""

    step: str
    objects: tuple[tuple[ClusterRef, str], ...]
    """Reference, and the uid of the object that was written there."""


class Expand(msgspec.Struct, frozen=True):
    """Command: ask an expanding step for its further steps."""

    step: str


class Probe(msgspec.Struct, frozen=True):
    """Command: check whether a CRD or webhook configuration is served."""

    step: str
    object_ref: ClusterRef


class Verify(msgspec.Struct, frozen=True):
    """Command: compare a live object that has changed with what was written."""

    step: str
    object_ref: ClusterRef


class SaveJournal(msgspec.Struct, frozen=True):
    """Command: record in the journal that the gates of these objects opened.

    If the step has hooks, a `JournalSaved` input follows: a verdict must be stored before its
    hook may be deleted.
    """

    step: str
    opened_gates: tuple[tuple[ClusterRef, str, str], ...]
    """Reference, digest of the manifest, uid."""
    hooks: tuple[ClusterRef, ...] = ()


class DeleteHooks(msgspec.Struct, frozen=True):
    """Command: release the hooks of a finished unit and delete those whose policy asks for it."""

    unit: UnitId
    failed: bool
    hook_runs: tuple[HookRun, ...] | None = None
    """Result of each hook, if deletion depends on the hook and not on the unit (Helm)."""


ObjectCommand = Apply | Delete | ReadStatus | Probe | Verify
Command = (
    ObjectCommand
    | AcquireLease
    | ReleaseLease
    | AwaitApproval
    | Refresh
    | CompareStep
    | Preflight
    | Expand
    | SaveJournal
    | DeleteHooks
)


class Decision(msgspec.Struct):
    """Commands to run, events to emit, and the time of the next call at the latest."""

    commands: list[Command]
    events: list[Event]
    wake_at: Ms | None = None
