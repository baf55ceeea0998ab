"""Progress of a rollout, computed from its events.

Each event updates only what it is about: an event costs the same in large and small rollouts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from tidegate.errors import sanitize
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import Plan, Step, step_items
from tidegate.model.rollouts.event import (
    FINAL_STATES,
    NOT_NEEDED,
    OPTED_OUT,
    Event,
    EventType,
    StepState,
)
from tidegate.model.rollouts.names import (
    shorten_unit_names,
    step_name,
    step_name_from_id,
    unit_name,
)
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId

OBJECT_RESULTS = frozenset(
    {EventType.OBJECT_WRITTEN, EventType.OBJECT_UNCHANGED, EventType.OBJECT_PRUNED}
)
STEP_STATES = {f"step.{state}": state for state in StepState}
_sanitize = lru_cache(maxsize=1_024)(sanitize)
"""Cached, because many objects wait for the same reason."""
CONCURRENCY_LIMIT = "ConcurrencyLimit"
"""Reason of a step that waits until fewer units of its group are running."""
MAX_LOG_LINES = 5
WAIT_DETAILS = frozenset({EventType.GATE_EXPLAINED, EventType.LOG_LINE})
SETTLED_EVENTS = frozenset(
    {EventType.OBJECT_READY, EventType.OBJECT_PRUNED, EventType.HOOK_FINISHED}
)


class GateWait(msgspec.Struct, frozen=True, gc=False):
    """An object that keeps a gate closed."""

    ref: Ref
    since: Ms
    reason: str
    message: str
    deadline: Ms
    """When the gate times out; 0 if unknown."""
    cause: str = ""
    """Why the object is not ready, if known."""
    log_lines: tuple[str, ...] = ()
    """Last log lines of the pods of the object."""


class UnitWait(msgspec.Struct, frozen=True, gc=False):
    """A wait for another rollout, for an approval, or for a cluster that does not answer."""

    since: Ms
    message: str


def is_blocked(event: Event) -> bool:
    """Return whether a step waits for an external decision, and not for a free slot."""
    return event.type is EventType.STEP_WAITING and event.reason not in {"", CONCURRENCY_LIMIT}


class ObjectNote(msgspec.Struct, frozen=True, gc=False):
    """A note about an object of a step."""

    step: str
    ref: Ref | None
    reason: str
    message: str


class StepProgress(msgspec.Struct):
    """Progress of a step."""

    id: str
    unit: str
    name: str
    cluster: str = ""
    refs: tuple[Ref, ...] = ()
    only_on_failure: bool = False
    unit_id: UnitId | None = None
    state: StepState = StepState.WAITING
    started_at: Ms | None = None
    state_since: Ms = Ms(0)
    """When the step entered its state."""
    retry_at: Ms | None = None
    """When the step is retried."""
    gate_checked: bool = False
    """Whether an event reported what the gate waits for."""
    reason: str = ""
    message: str = ""
    last_error: str = ""
    """Why the last attempt failed."""
    failed_object: Ref | None = None
    """The object because of which the step, or its last attempt, failed."""
    object_results: dict[Ref, EventType] = msgspec.field(default_factory=dict)
    waits: dict[Ref, GateWait] = msgspec.field(default_factory=dict)

    @property
    def size(self) -> int:
        return max(len(self.refs), len(self.object_results))

    @property
    def settled_count(self) -> int:
        """Number of objects that need nothing more; 0 before the gate was checked."""
        if self.state is StepState.PASSED:
            return self.size
        if self.gate_checked and self.state in {StepState.GATING, StepState.FAILED}:
            return len(self.object_results) - len(self.object_results.keys() & self.waits.keys())
        return 0

    @property
    def deadline(self) -> Ms:
        """When the gate times out; 0 if unknown."""
        return max((wait.deadline for wait in self.waits.values()), default=Ms(0))

    @property
    def is_unused(self) -> bool:
        """Whether the step is for failures only and was never started."""
        return self.only_on_failure and self.started_at is None

    def elapsed(self, now: Ms) -> Ms:
        end = self.state_since if self.state in FINAL_STATES else now
        return Ms(max(0, end - (end if self.started_at is None else self.started_at)))


class RolloutProgress:
    """Progress of a rollout, from its plan and its events. Times count from `start`."""

    def __init__(self, start: Ms) -> None:
        self.start = start
        self.now = start
        self.steps: dict[str, StepProgress] = {}
        self.active: dict[str, StepProgress] = {}
        self.finished: dict[str, StepProgress] = {}
        self.result_counts: Counter[EventType] = Counter()
        self.unproven: list[ObjectNote] = []
        self.refused: list[ObjectNote] = []
        self.preflight_refusals: list[Event] = []
        """Events about objects that the cluster rejected before the first step."""
        self.unconfirmed_prunes: dict[Ref, None] = {}
        """Objects that are not pruned because pruning needs a confirmation."""
        self.unmanaged: dict[Ref, None] = {}
        """Objects that are not written because an annotation opts out of management."""
        self.waiting_units: dict[str, UnitWait] = {}
        """Units that wait before their first step, by name."""
        self.silent_clusters: dict[str, UnitWait] = {}
        """Clusters that do not answer."""
        self.unknown: list[ObjectNote] = []
        """Objects of which it is unknown whether they were written or deleted."""
        self.retries = 0
        self.outcome = ""
        self.message = ""
        self.has_timed_out = False
        """Whether the rollout was stopped by its timeout."""
        self._unit_names: dict[str, str] = {}
        self._empty_steps: set[str] = set()
        """Steps without objects; they are not shown."""
        self._has_short_names = True
        """Whether the unit names are already shortened."""

    def add_plan(self, plan: Plan) -> None:
        """Add the steps of a plan before they start."""
        for step in plan.steps:
            existing = self.steps.get(step.id)
            if step.is_placeholder:
                self._empty_steps.add(step.id)
                continue
            if existing is None:
                self._add_step(_step_from_plan(step))
            else:
                existing.refs = _step_refs(step)

    def step_title(self, step: StepProgress) -> str:
        """Return the name of a step, with its unit if there are several."""
        unit = self.unit_name(step.unit)
        return f"{unit} {step.name}" if unit else step.name

    def unit_name(self, unit: str) -> str:
        if not self._has_short_names:
            self._unit_names, self._has_short_names = shorten_unit_names(self._unit_names), True
        return self._unit_names.get(unit, unit)

    @property
    def counted_steps(self) -> list[StepProgress]:
        """Steps that belong to every rollout of the plan, and steps that were started."""
        return [step for step in self.steps.values() if not step.is_unused]

    @property
    def is_before_first_step(self) -> bool:
        """Whether no step has started."""
        return not (self.active or self.finished or self.outcome)

    def failed_steps(self) -> list[StepProgress]:
        return [step for step in self.finished.values() if step.state is StepState.FAILED]

    def retried_steps(self) -> list[StepProgress]:
        """Return the steps that were retried and have not passed."""
        return [step for step in self.steps.values() if step.last_error]

    def pending_steps(self) -> Iterable[StepProgress]:
        """Yield the steps that have not started, in the order of the plan."""
        for step in self.steps.values():
            if (
                step.state is StepState.WAITING
                and not step.only_on_failure
                and step.id not in self.active
            ):
                yield step

    def add_event(self, event: Event) -> None:
        self.now = max(self.now, event.at)
        if event.type is EventType.ROLLOUT_FINISHED:
            self.outcome, self.message = sanitize(event.reason), sanitize(event.message)
            return
        self._update_external_waits(event)
        if not event.step or event.step in self._empty_steps:
            return
        step = self.steps.get(event.step) or self._add_step(_step_from_event(event))
        state = STEP_STATES.get(event.type)
        if state is not None:
            self._enter_state(step, state, event)
        elif event.ref is not None:
            self._update_object(step, event, event.ref)
        if event.type is EventType.RETRY_SCHEDULED:
            self._schedule_retry(step, event)

    def _update_external_waits(self, event: Event) -> None:
        """Update which units wait for another rollout, and which clusters do not answer."""
        unit, message = "" if event.unit is None else str(event.unit), sanitize(event.message)
        match event.type:
            case EventType.UNIT_WAITING:
                previous = self.waiting_units.pop(unit, None)
                since = previous.since if previous else event.at
                self.waiting_units[unit] = UnitWait(since, message)
            case EventType.UNIT_ACQUIRED:
                self.waiting_units.pop(unit, None)
            case EventType.CLUSTER_WAITING:
                self.silent_clusters[event.cluster] = UnitWait(event.at, message)
            case EventType.CLUSTER_ANSWERED:
                self.silent_clusters.pop(event.cluster, None)
            case _:
                return

    def _add_step(self, step: StepProgress) -> StepProgress:
        self.steps[step.id] = step
        if step.unit not in self._unit_names:
            self._unit_names[step.unit], self._has_short_names = step.unit, False
        return step

    def _enter_state(self, step: StepProgress, state: StepState, event: Event) -> None:
        step.state, step.state_since, step.retry_at = state, event.at, None
        step.reason, step.message = sanitize(event.reason), sanitize(event.message)
        if state in FINAL_STATES:
            step.last_error, step.failed_object = "", event.failed_object
            if state is not StepState.FAILED:
                step.waits.clear()
            self.active.pop(step.id, None)
            self.finished[step.id] = step
            return
        self.finished.pop(step.id, None)
        self.waiting_units.pop(step.unit, None)
        if state is StepState.WAITING:
            self.active.pop(step.id, None)
            if is_blocked(event):
                self.waiting_units[step.unit] = UnitWait(event.at, step.message)
            return
        self.active[step.id] = step
        if step.started_at is None:
            step.started_at = event.at
        if state is StepState.CHECKING:
            step.gate_checked = False
            step.waits.clear()

    def _schedule_retry(self, step: StepProgress, event: Event) -> None:
        self.retries += 1
        step.waits.clear()
        step.last_error, step.failed_object = sanitize(event.message), event.failed_object
        step.state, step.state_since, step.retry_at = StepState.WAITING, event.at, event.until
        step.reason, step.message = sanitize(event.reason), sanitize(event.message)
        self.finished.pop(step.id, None)
        self.active[step.id] = step

    def _update_object(self, step: StepProgress, event: Event, ref: Ref) -> None:
        event_type = event.type
        if event_type in OBJECT_RESULTS:
            self._count_result(step, ref, event_type)
        if event_type is EventType.OBJECT_SKIPPED:
            refs = self.unmanaged if event.reason == OPTED_OUT else self.unconfirmed_prunes
            refs[ref] = None
        if event_type in SETTLED_EVENTS:
            step.waits.pop(ref, None)
        elif event_type is EventType.GATE_WAITING:
            self._update_wait(step, event, ref)
        elif event_type in WAIT_DETAILS and ref in step.waits:
            step.waits[ref] = _with_details(step.waits[ref], event)
        elif (notes := self._notes(event_type)) is not None:
            notes.append(ObjectNote(step.id, ref, event.reason, sanitize(event.message)))
            if event_type is EventType.OBJECT_REFUSED and self.is_before_first_step:
                self.preflight_refusals.append(event)

    def _notes(self, event_type: EventType) -> list[ObjectNote] | None:
        """Return the list that notes of an event are added to; None if it is no note."""
        match event_type:
            case EventType.GATE_UNPROVEN:
                return self.unproven
            case EventType.OBJECT_REFUSED:
                return self.refused
            case EventType.OBJECT_UNKNOWN:
                return self.unknown
            case _:
                return None

    def _update_wait(self, step: StepProgress, event: Event, ref: Ref) -> None:
        previous = step.waits.get(ref)
        since, cause = (previous.since, previous.cause) if previous else (event.at, "")
        log_lines = previous.log_lines if previous else ()
        message = _sanitize(event.message or event.reason)
        step.gate_checked = True
        step.waits[ref] = GateWait(ref, since, event.reason, message, event.until, cause, log_lines)

    def _count_result(self, step: StepProgress, ref: Ref, event_type: EventType) -> None:
        """Count each object once; a retry does not turn written into unchanged."""
        previous = step.object_results.get(ref)
        if previous is None or (
            previous is EventType.OBJECT_UNCHANGED and event_type is not previous
        ):
            if previous is not None:
                self.result_counts[previous] -= 1
            self.result_counts[event_type] += 1
            step.object_results[ref] = event_type


def _with_details(wait: GateWait, event: Event) -> GateWait:
    """Return a wait with the cause or the log line of an event."""
    if event.type is EventType.GATE_EXPLAINED:
        return msgspec.structs.replace(wait, cause=_sanitize(event.message))
    log_lines = (*wait.log_lines, event.message)[-MAX_LOG_LINES:]
    return msgspec.structs.replace(wait, log_lines=log_lines)


def _step_from_plan(step: Step) -> StepProgress:
    unit, name, refs = unit_name(step.unit, step.cluster), step_name(step), _step_refs(step)
    return StepProgress(step.id, unit, name, step.cluster, refs, step.only_on_failure, step.unit)


def _step_from_event(event: Event) -> StepProgress:
    """Return a step that was added during the rollout and is known by its events only.

    A step that was not needed was there for a failure.
    """
    unit = "" if event.unit is None else unit_name(event.unit, event.cluster)
    name = step_name_from_id(event.step.removeprefix(f"{unit}/"))
    only_on_failure = event.reason == NOT_NEEDED
    cluster, unit_id = event.cluster, event.unit
    return StepProgress(
        event.step, unit, name, cluster, only_on_failure=only_on_failure, unit_id=unit_id
    )


def _step_refs(step: Step) -> tuple[Ref, ...]:
    return tuple(item.ref for item in step_items(step))
