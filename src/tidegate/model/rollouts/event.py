"""Events of a rollout: the input of screens, status and run records."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.change import DiffAction, FieldChange
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId


class RolloutOutcome(StrEnum):
    """The outcome of a rollout."""

    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"
    """Stopped by the user."""
    SUPERSEDED = "superseded"
    """Stopped because another rollout of the same unit replaced it."""
    TIMED_OUT = "timed-out"
    """Stopped because the time limit was exceeded."""
    UNREACHABLE = "unreachable"
    """Ended because a cluster did not answer for too long."""
    INVALID = "invalid"
    """The cluster would reject a part of the plan. Nothing was written."""
    FORBIDDEN = "forbidden"
    """Permissions are missing for a part of the plan. Nothing was written."""


class StepState(StrEnum):
    WAITING = "waiting"
    CHECKING = "checking"
    APPLYING = "applying"
    GATING = "gating"
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


FINAL_STATES = frozenset(
    {StepState.PASSED, StepState.FAILED, StepState.SKIPPED, StepState.SUPERSEDED}
)


class EventType(StrEnum):
    """The type of an event. Step events are named after the new state of the step."""

    STEP_WAITING = "step.waiting"
    STEP_CHECKING = "step.checking"
    STEP_APPLYING = "step.applying"
    STEP_GATING = "step.gating"
    STEP_PASSED = "step.passed"
    STEP_FAILED = "step.failed"
    STEP_SKIPPED = "step.skipped"
    STEP_SUPERSEDED = "step.superseded"
    STEP_SETTLED = "step.settled"
    """By the journal, an earlier rollout of the same manifests finished the step."""
    OBJECT_WRITTEN = "object.written"
    OBJECT_UNCHANGED = "object.unchanged"
    OBJECT_PRUNED = "object.pruned"
    OBJECT_SKIPPED = "object.skipped"
    """The object was to be pruned or written, but was skipped."""
    OBJECT_DRIFTED = "object.drifted"
    """Other writers have changed the object, and it stays as it is."""
    OBJECT_REFUSED = "object.refused"
    OBJECT_ADOPTED = "object.adopted"
    """The object belonged to another unit until now."""
    OBJECT_UNKNOWN = "object.unknown"
    """The rollout ended before the cluster answered whether it wrote or deleted the object."""
    OBJECT_READY = "object.ready"
    """A gate waited for the object, which is ready now."""
    HOOK_FINISHED = "hook.finished"
    HOOK_DELETED = "hook.deleted"
    GATE_WAITING = "gate.waiting"
    GATE_EXPLAINED = "gate.explained"
    """Why an awaited object is not ready.

    An empty message means that no cause is known any more.
    """
    LOG_LINE = "log.line"
    """A log line of a pod of a hook or a Job. The reason names pod and container."""
    GATE_OPENED = "gate.opened"
    GATE_UNPROVEN = "gate.unverified"
    RETRY_SCHEDULED = "retry.scheduled"
    UNIT_FINISHED = "unit.finished"
    """All steps of a unit are final: passed, failed, skipped or stopped."""
    UNIT_WAITING = "unit.waiting"
    """Another rollout holds the lease of the unit."""
    UNIT_ACQUIRED = "unit.acquired"
    """The lease of the unit was acquired after a wait."""
    CLUSTER_WAITING = "cluster.waiting"
    """A cluster does not answer."""
    CLUSTER_ANSWERED = "cluster.answered"
    """A cluster answers again."""
    ROLLOUT_STARTED = "rollout.started"
    ROLLOUT_SUPERSEDED = "rollout.superseded"
    ROLLOUT_FINISHED = "rollout.finished"


OPTED_OUT = "OptedOut"
"""Reason of a skipped object that opts out of management."""
OWNED_OBJECT_DELETED = "Deleted"
"""Reason of an adopted object that is not written but deleted."""
FAILURE_IGNORED = "FailureIgnored"
"""Reason of a failed step whose failure is ignored."""
"""Why an object is kept that asks for it itself."""


def step_event_type(state: StepState) -> EventType:
    return EventType(f"step.{state}")


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A time, a type, a subject, a reason for programs and a message for people.

    The subject is a unit, one of its steps, and an object of the cluster, as far as they apply.
    """

    at: Ms
    type: EventType
    step: str = ""
    ref: Ref | None = None
    reason: str = ""
    message: str = ""
    until: Ms = Ms(0)
    """When a wait ends at the latest."""
    unit: UnitId | None = None
    cluster: str = ""
    field: str = ""
    """The field of the object that the event is about."""
    location: str = ""
    """The location of that field in the user's files."""
    operation: DiffAction | None = None
    """The operation on the object."""
    fields: tuple[FieldChange, ...] = ()
    """The fields of the object that the operation changed."""
    failed_object: Ref | None = None
    """The object because of which a step failed or is retried; not part of JSON documents."""


NOT_NEEDED = "NotNeeded"
"""Reason of a skipped step that only runs after a failure."""
