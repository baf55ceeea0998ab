"""What a rollout tells: everything that people, pages and records are made from."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.change import Fate, FieldChange
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.unit import UnitId


class Result(StrEnum):
    """How a rollout ended."""

    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"
    """Somebody wanted it so."""
    OVERTAKEN = "overtaken"
    """Stopped, as another rollout of the same unit wanted to go on."""
    LATE = "late"
    """Stopped, as the time that was given is over."""
    INVALID = "invalid"
    """Something of the plan cannot be taken, and nothing was written."""
    FORBIDDEN = "forbidden"
    """The same, and only for want of rights."""


class StepState(StrEnum):
    WAITING = "waiting"
    CHECKING = "checking"
    APPLYING = "applying"
    GATING = "gating"
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


FINAL = frozenset({StepState.PASSED, StepState.FAILED, StepState.SKIPPED, StepState.SUPERSEDED})


class Told(StrEnum):
    """What an event tells. Those of a step carry the name of its new state."""

    STEP_WAITING = "step.waiting"
    STEP_CHECKING = "step.checking"
    STEP_APPLYING = "step.applying"
    STEP_GATING = "step.gating"
    STEP_PASSED = "step.passed"
    STEP_FAILED = "step.failed"
    STEP_SKIPPED = "step.skipped"
    STEP_SUPERSEDED = "step.superseded"
    OBJECT_WRITTEN = "object.written"
    OBJECT_UNCHANGED = "object.unchanged"
    OBJECT_PRUNED = "object.pruned"
    OBJECT_KEPT = "object.kept"
    """It was to be pruned or written, and is left alone."""
    OBJECT_DRIFTED = "object.drifted"
    """Others have changed it, and it is left so."""
    OBJECT_REFUSED = "object.refused"
    OBJECT_TAKEN = "object.taken"
    """It is another unit's until now."""
    OBJECT_READY = "object.ready"
    """A gate waited for it, and waits for it no longer."""
    HOOK_FINISHED = "hook.finished"
    HOOK_DELETED = "hook.deleted"
    GATE_WAITING = "gate.waiting"
    GATE_EXPLAINED = "gate.explained"
    """Why an object is not ready that a gate waits for; nothing: no cause is known any more."""
    LOG_PRINTED = "log.printed"
    """A line of a pod of a hook or a Job; the reason names pod and container."""
    GATE_OPENED = "gate.opened"
    GATE_UNPROVEN = "gate.unproven"
    RETRY_PLANNED = "retry.planned"
    UNIT_ENDED = "unit.ended"
    """All of a unit is at rest: passed, failed, skipped or stopped."""
    UNIT_WAITING = "unit.waiting"
    """Another rollout holds it."""
    UNIT_TAKEN = "unit.taken"
    """It was waited for, and is ours now."""
    ROLLOUT_BEGUN = "rollout.begun"
    ROLLOUT_SUPERSEDED = "rollout.superseded"
    ROLLOUT_ENDED = "rollout.ended"


LEFT = "Left"
FORGIVEN = "Forgiven"
"""A step has failed, and that counts for nothing."""
"""Why an object is kept that asks for it itself."""


def told_of(state: StepState) -> Told:
    return Told(f"step.{state}")


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A moment, what it tells, its subject, a reason for programs and a sentence for people.

    The subject is a unit, one of its steps, and an object of the cluster, as far as it goes.
    `until` is the moment that a wait ends at the latest. `field` is what of an object it is about,
    and `where` the place of that in the user's files. `operation`: what was done to an object, and
    `fields` what that has changed of it.
    """

    at: Ms
    told: Told
    step: str = ""
    ref: Ref | None = None
    reason: str = ""
    sentence: str = ""
    until: Ms = Ms(0)
    unit: UnitId | None = None
    cluster: str = ""
    field: str = ""
    where: str = ""
    operation: Fate | None = None
    fields: tuple[FieldChange, ...] = ()


NOT_NEEDED = "NotNeeded"
"""Why a step is left out that was there for a failure."""
