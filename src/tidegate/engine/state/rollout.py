"""The state of a rollout: the state of each step, and what each of its objects waits for.

Only `decide` changes it. An input finds what it concerns by key; nothing is scanned.
"""

from __future__ import annotations

import heapq
from enum import StrEnum

import msgspec

from tidegate.engine.messages import (
    Command,
    CompareResult,
    Decision,
    Failure,
    HealthChanged,
    PlanSuperseded,
    WrittenObject,
)
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.plans.change import DiffAction, FieldChange
from tidegate.model.plans.drift import ObjectDrift
from tidegate.model.plans.plan import AWAIT_ACTIONS, PlanItem, PlannedUnit, Step
from tidegate.model.rollouts.event import FINAL_STATES, Event, EventType, StepState, step_event_type
from tidegate.model.times import Ms
from tidegate.model.units.release_history import HookRun, RevisionOutcome
from tidegate.model.units.semantics import Semantics
from tidegate.model.units.unit import UnitId


class ItemState(StrEnum):
    """State of an object in a step."""

    PENDING = "pending"
    DELETING = "deleting"
    WRITING = "writing"
    GATING = "gating"
    PASSED = "passed"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    """The object was created and is deleted again, as another write of its step was rejected."""


PASSED_BY_STATE = {ItemState.PASSED: True, ItemState.FAILED: False}
"""Whether an object in a final state has passed."""


class ItemRun(msgspec.Struct, eq=False):
    """State of one object of a step."""

    item: PlanItem
    object_ref: ClusterRef
    step: StepRun
    state: ItemState = ItemState.PENDING
    compare_result: CompareResult = CompareResult.ABSENT
    live_before: WrittenObject | None = None
    """The live object when the step was compared."""
    drift: ObjectDrift | None = None
    """Changes made by others until then."""
    fields: tuple[FieldChange, ...] = ()
    """Fields that differed then."""
    replaces: bool = False
    written: WrittenObject | None = None
    written_at: Ms = Ms(0)
    """Time of the write."""
    health: HealthChanged | None = None
    """The last health verdict."""
    finished_uid: str = ""
    """Uid of the object if it finished successfully and may remove itself."""
    unhealthy_since: Ms | None = None
    """Time since which the object is Degraded or Suspended."""
    awaits_reply: bool = False
    """Whether a write has not been answered yet."""
    is_unknown: bool = False
    """Whether the last write may have been done, although the cluster did not answer."""
    reapply_count: int = 0
    is_probing: bool = False
    probe_passed: bool = False
    probe_count: int = 0
    verified_version: tuple[int, str] = (0, "")
    """Generation and resourceVersion of the last state that was verified to contain our fields."""
    wait_message: str = ""
    """The wait message that was emitted last."""

    def reset(self) -> None:
        """Reset to pending; the last health verdict is kept."""
        self.state = ItemState.PENDING
        self.written = self.live_before = self.unhealthy_since = None
        self.reapply_count = self.probe_count = 0
        self.probe_passed = False
        self.verified_version = (0, "")
        self.wait_message = ""

    def copy_state(self, previous: ItemRun) -> None:
        """Copy the state of the same object in the previous plan."""
        self.state, self.compare_result, self.live_before = (
            previous.state,
            previous.compare_result,
            previous.live_before,
        )
        self.written, self.written_at, self.health = (
            previous.written,
            previous.written_at,
            previous.health,
        )
        self.drift, self.fields, self.replaces = previous.drift, previous.fields, previous.replaces
        self.unhealthy_since, self.probe_passed, self.wait_message = (
            previous.unhealthy_since,
            previous.probe_passed,
            previous.wait_message,
        )
        self.verified_version, self.finished_uid = previous.verified_version, previous.finished_uid
        self.is_unknown = previous.is_unknown


class StepRun(msgspec.Struct, eq=False):
    """State of one step."""

    step: Step
    unit: UnitRun
    state: StepState = StepState.WAITING
    unmet_edges: int = 0
    """Number of edges that still block the step."""
    before: list[StepRun] = msgspec.field(default_factory=list)
    after: list[StepRun] = msgspec.field(default_factory=list)
    items: list[ItemRun] = msgspec.field(default_factory=list)
    not_before: Ms = Ms(0)
    next_batch: int = 0
    batches_not_before: Ms = Ms(0)
    """Time before which no batch starts, because earlier hooks were deleted."""
    pending_writes: int = 0
    attempts: int = 0
    """Number of retries."""
    approved: bool = False
    """Whether the step was approved at its barrier."""
    is_noop: bool = False
    """Whether the step has nothing to do any more, because another process did its work."""
    wait_message: str = ""
    """Why the step does not start although no edge blocks it, as emitted last."""
    failure: Failure | None = None
    """The first failure; it takes effect when the other objects have settled."""
    gating_count: int = 0
    """Number of objects that still keep the gate closed."""
    applied_at: Ms = Ms(0)
    deadline: Ms | None = None
    changed_at: Ms = Ms(0)
    """Time of the last change of one of its objects."""
    next_check_at: Ms | None = None
    is_reading_status: bool = False
    """Whether its objects are being read again because its time is up."""
    has_fresh_status: bool = False
    """Whether its objects have just been read."""
    unfinished_children: int = 0
    """Number of unfinished steps that it expanded to."""
    expanded_from: StepRun | None = None
    """The expanding step that this step comes from."""
    failed_child: str = ""
    """Id of an expanded step that did not pass."""
    has_released_children: bool = False
    """Whether child units that start with this step run on their own, even after a retry."""

    @property
    def is_final(self) -> bool:
        """Whether the step has reached a final state."""
        return self.state in FINAL_STATES

    @property
    def is_writing(self) -> bool:
        """Whether objects of the step may be written: it has started, and does not only wait."""
        writes = self.items and not self.only_awaits
        return bool(writes) and self.state is not StepState.WAITING and not self.is_final

    @property
    def pause(self) -> Ms:
        """The pause after the step, unless it is in the last wave."""
        return Ms(0) if self.step.only_creates else self.semantics.pause

    @property
    def is_in_last_wave(self) -> bool:
        """Whether no later wave of its unit waits for it."""
        later_steps = (step.step for step in self.after if step.unit is self.unit)
        return all(step.wave_key == self.step.wave_key for step in later_steps)

    @property
    def only_awaits(self) -> bool:
        """Whether the step only waits for objects of other units."""
        return bool(self.items) and all(run.item.action in AWAIT_ACTIONS for run in self.items)

    @property
    def semantics(self) -> Semantics:
        """Semantics of the unit."""
        return self.unit.semantics


class UnitRun(msgspec.Struct, eq=False):
    """State of one unit; a unit ends on its own when all of its steps are final."""

    unit: PlannedUnit
    semantics: Semantics
    slots: GroupSlots | None = None
    steps: list[StepRun] = msgspec.field(default_factory=list)
    on_failure_steps: list[StepRun] = msgspec.field(default_factory=list)
    """Steps that run when another step failed: SyncFail hooks of Argo CD, Helm remediation."""
    unfinished_steps: int = 0
    pending_replies: int = 0
    """Number of commands that have not been answered."""
    attempts: int = 0
    """Number of retries of the whole unit."""
    needs_refresh: bool = False
    """Whether its source must be checked for a newer revision before a step starts."""
    refresh_requested: bool = False
    """Whether that check was requested and is not answered."""
    is_remediating: bool = False
    """Whether its on-failure steps are running, after which the unit is retried."""
    delayed_retry: tuple[StepRun, Failure] | None = None
    """The failed step that is retried when its on-failure steps have ended, and why it failed."""
    failure: RevisionOutcome | None = None
    """Outcome of the last failed attempt."""
    on_failure_hooks: tuple[HookRun, ...] = ()
    """Results of the hooks that ran because of that failure."""
    needs_lease: bool = False
    """Whether its lease must be acquired before a step starts."""
    lease_requested: bool = False
    """Whether the lease was requested because a step could start."""
    has_slot: bool = False
    """Whether the unit has a slot of its group."""
    approved: bool = False
    """Whether the unit was approved, including its barriers."""
    awaits_approval: bool = False
    """Whether approvals of the unit are being watched."""
    has_work: bool = False
    """Whether the unit has work to do."""
    window_started_at: Ms | None = None
    """Time at which its sync windows first allowed a step to start."""
    has_hooks: bool = False
    """Whether the unit has hooks, which are released at its end."""
    failed: bool = False
    stop_reason: str = ""
    """Why no further step is started; empty while steps may start."""
    exclusion_reason: str = ""
    """Why the unit is left out; empty if it is not."""
    ended: bool = False

    @property
    def is_unstarted(self) -> bool:
        """Whether no step of the unit has started."""
        return all(step.state is StepState.WAITING for step in self.steps)

    @property
    def has_run_on_failure(self) -> bool:
        """Whether an on-failure step has run."""
        run_states = {StepState.PASSED, StepState.FAILED}
        return any(step.step.only_on_failure and step.state in run_states for step in self.steps)

    @property
    def is_remediated(self) -> bool:
        """Whether all on-failure steps have passed."""
        on_failure = [step for step in self.steps if step.step.only_on_failure]
        return bool(on_failure) and all(step.state is StepState.PASSED for step in on_failure)

    def hook_runs(
        self, now: Ms, *, on_failure: bool = False, failing_step: StepRun | None = None
    ) -> tuple[HookRun, ...]:
        """Return the results of its hooks, or of its on-failure hooks.

        Hooks that a failed step still waits for have failed, too.
        """
        runs = (
            run
            for step in self.steps
            if step.step.only_on_failure is on_failure
            for run in step.items
        )

        def has_passed(run: ItemRun) -> bool | None:
            is_failed = run.step is failing_step or run.step.state is StepState.FAILED
            return PASSED_BY_STATE.get(run.state, False if is_failed else None)

        return tuple(
            HookRun(
                run.item.ref, run.written_at or now, now, has_passed(run), run.step.step.is_test
            )
            for run in runs
            if run.item.hook is not None and run.state is not ItemState.PENDING
        )


class GroupSlots(msgspec.Struct):
    """Slots of a group: how many units are in progress, and which units wait for a slot."""

    group: str
    limit: int
    frees_idle_slots: bool = False
    """Whether a unit frees its slot when it has failed, or waits for a retry or another unit."""
    used: int = 0
    """Number of units that have a slot."""
    failed: list[UnitId] = msgspec.field(default_factory=list)
    """Failed units that keep their slots: the limit is how many units may be broken at once."""
    queue: dict[UnitId, UnitRun] = msgspec.field(default_factory=dict)

    @property
    def is_stuck(self) -> bool:
        """Whether no slot will become free in this rollout."""
        return 0 < self.limit <= len(self.failed)


class Rollout(msgspec.Struct):
    """State of one execution of a plan."""

    digest: str = ""
    started_at: Ms = Ms(0)
    units: dict[UnitId, UnitRun] = msgspec.field(default_factory=dict)
    steps: dict[str, StepRun] = msgspec.field(default_factory=dict)
    items: dict[ClusterRef, list[ItemRun]] = msgspec.field(default_factory=dict)
    slots: dict[str, GroupSlots] = msgspec.field(default_factory=dict)
    running_units: int = 0
    """Number of units that have not ended."""
    pending_replies: int = 0
    """Number of commands that have not been answered, in all units."""
    stop_reason: str = ""
    is_being_superseded: bool = False
    """Whether a newer plan replaces this one."""
    successor: PlanSuperseded | None = None
    """The newer plan, once it is prepared."""
    abandon_reason: str = ""
    """Why a unit was stopped while the others continued."""
    final_refresh_unit: UnitId | None = None
    """Unit that may have more to deploy at the end.

    Its source is checked once more before the end.
    """
    is_final_refresh_pending: bool = False
    """Whether that check was requested and is not answered."""
    ended: bool = False
    failed: bool = False
    _timers: list[tuple[Ms, int, str]] = msgspec.field(default_factory=list)
    _sequence: int = 0

    @property
    def is_draining(self) -> bool:
        """Whether no new step may start."""
        return bool(self.stop_reason) or self.is_being_superseded

    def set_timer(self, at: Ms, step: str) -> None:
        """Set a timer for a step."""
        self._sequence += 1
        heapq.heappush(self._timers, (at, self._sequence, step))

    def pop_due_timers(self, now: Ms) -> list[str]:
        """Return the steps whose timers have elapsed, each once, in the order of their timers."""
        steps: dict[str, None] = {}
        while self._timers and self._timers[0][0] <= now:
            steps[heapq.heappop(self._timers)[2]] = None
        return list(steps)

    def unknown_writes(self, in_flight: set[ClusterRef]) -> list[ItemRun]:
        """Return the objects of which it is unknown whether they were written or deleted."""
        return [
            run
            for object_ref, runs in self.items.items()
            for run in runs
            if run.is_unknown or (run.awaits_reply and object_ref in in_flight)
        ]

    @property
    def next_timer(self) -> Ms | None:
        """Time of the next timer; None if there is none."""
        return self._timers[0][0] if self._timers else None


class DecisionContext:
    """One call of `decide`: the rollout, the time, and the collected commands and events."""

    def __init__(self, rollout: Rollout, now: Ms) -> None:
        self.rollout = rollout
        self.now = now
        self.commands: list[Command] = []
        self.events: list[Event] = []
        self.touched_units: dict[UnitId, UnitRun] = {}
        """Units that may have ended."""

    def issue(self, command: Command) -> None:
        """Add a command to the decision."""
        self.commands.append(command)

    def expect_reply(self, unit: UnitRun) -> None:
        """Count a command whose answer is pending."""
        unit.pending_replies += 1
        self.rollout.pending_replies += 1

    def receive_reply(self, unit: UnitRun) -> None:
        """Count the answer to a command."""
        unit.pending_replies -= 1
        self.rollout.pending_replies -= 1
        self.touched_units[unit.unit.id] = unit

    def is_draining(self, step: StepRun) -> bool:
        """Return whether nothing new of a step may start."""
        return self.rollout.is_draining or bool(step.unit.stop_reason)

    def emit(
        self,
        event_type: EventType,
        step: StepRun | None = None,
        *,
        ref: Ref | None = None,
        reason: str = "",
        message: str = "",
        until: Ms = Ms(0),
        failed_object: Ref | None = None,
    ) -> None:
        """Emit an event about a step or the whole rollout; steps without objects emit none."""
        if step is None:
            self.events.append(Event(self.now, event_type, "", ref, reason, message, until))
            return
        plan_step = step.step
        if plan_step.is_placeholder:
            return
        self.events.append(
            Event(
                self.now,
                event_type,
                plan_step.id,
                ref,
                reason,
                message,
                until,
                plan_step.unit,
                plan_step.cluster,
                failed_object=failed_object,
            )
        )

    def emit_object_event(
        self,
        event_type: EventType,
        run: ItemRun,
        operation: DiffAction,
        *,
        fields: tuple[FieldChange, ...] = (),
        reason: str = "",
        message: str = "",
    ) -> None:
        """Emit what was done to an object, or that nothing had to be done."""
        plan_step, ref = run.step.step, run.item.ref
        event = Event(
            self.now,
            event_type,
            plan_step.id,
            ref,
            reason,
            message,
            Ms(0),
            plan_step.unit,
            plan_step.cluster,
        )
        self.events.append(msgspec.structs.replace(event, operation=operation, fields=fields))

    def emit_unit_event(
        self,
        event_type: EventType,
        unit: UnitRun,
        *,
        ref: Ref | None = None,
        reason: str,
        message: str = "",
    ) -> None:
        """Emit an event about a unit."""
        name, cluster = unit.unit.id, unit.unit.cluster
        self.events.append(
            Event(self.now, event_type, "", ref, reason, message, unit=name, cluster=cluster)
        )

    def set_step_state(
        self,
        step: StepRun,
        state: StepState,
        *,
        reason: str = "",
        message: str = "",
        failed_object: Ref | None = None,
    ) -> None:
        """Set the state of a step and emit the event of that state."""
        step.state = state
        if state in FINAL_STATES:
            step.unit.unfinished_steps -= 1
            self.touched_units[step.unit.unit.id] = step.unit
        self.emit(
            step_event_type(state),
            step,
            reason=reason,
            message=message,
            failed_object=failed_object,
        )

    def set_timer(self, at: Ms, step: StepRun) -> None:
        """Set a timer for a step."""
        self.rollout.set_timer(at, step.step.id)

    def to_decision(self) -> Decision:
        """Return the collected decision."""
        return Decision(
            self.commands, self.events, None if self.rollout.ended else self.rollout.next_timer
        )
