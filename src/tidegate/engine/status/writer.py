"""Status writer: updates the status of unit resources while the rollout runs.

A status is written when a unit waits for others, starts, waits at a gate, and ends. Its
contents are built by a `StatusBuilder` from the progress of the unit. Only the end of the unit
itself, after all of its gates, waits for a status write. A status that cannot be written is
reported and fails nothing.
"""

from __future__ import annotations

from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure, ProcedureRunner
from tidegate.engine.context import RolloutContext
from tidegate.engine.evaluator import StatusBuilder, StatusPatch
from tidegate.engine.records.unit_lease import POLL_INTERVAL
from tidegate.engine.state.rollout import Rollout, UnitRun
from tidegate.engine.status.unit_tracker import (
    UnitTracker,
    blocked_message,
    blocking_units,
    build_progress,
    evaluate_changed,
    find_unpruned,
)
from tidegate.errors import sanitize
from tidegate.model.k8s.objects import ClusterRef, LiveObject, object_body, with_served_version
from tidegate.model.rollouts.event import Event, EventType, RolloutOutcome
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.unit import UnitId
from tidegate.world import messages
from tidegate.world.requests import Get, PatchType, Verb, Write

MIN_INTERVAL = Ms(1 * SECOND)
"""Minimum interval between two status writes of a running unit."""
INTERVAL_PER_OBJECT = Ms(2)
"""Additional interval for each object, because every write includes all objects."""
WRITE_TRIES = 3
"""Number of tries to write a status while others write at the same time."""
STATUS = "status"


class StatusWriter:
    """Writer of the status of all units of a rollout."""

    def __init__(
        self,
        context: RolloutContext,
        procedures: ProcedureRunner,
        rollout: Rollout,
        status_builder: StatusBuilder | None,
    ) -> None:
        self._context = context
        self._procedures = procedures
        self._rollout = rollout
        self._status_builder = status_builder
        self.unreported: dict[UnitId, str] = {}
        """Units whose status could not be written, with the reason."""
        self._trackers: dict[UnitId, UnitTracker] = {}
        self._units_by_resource: dict[ClusterRef, UnitId] = {}
        self._waiting_units: dict[UnitId, set[UnitId]] = {}
        self._delayed_writes = 0
        """Number of final statuses being written whose unit resource did not exist before."""
        self._is_stopping = False

    def on_event(self, event: Event) -> None:
        """Record an event and write the statuses that change with it."""
        if self._status_builder is None:
            return
        match event.type:
            case EventType.ROLLOUT_STARTED:
                self._start()
            case EventType.OBJECT_WRITTEN | EventType.OBJECT_UNCHANGED if event.ref is not None:
                self._on_resource_written(ClusterRef(event.cluster, event.ref))
            case (
                EventType.STEP_APPLYING
                | EventType.STEP_GATING
                | EventType.STEP_FAILED
                | EventType.GATE_WAITING
            ):
                if event.unit is not None and (tracker := self._tracker(event.unit)) is not None:
                    self._track(event.unit, tracker, event)
            case EventType.UNIT_FINISHED if event.unit is not None:
                for name in self._waiting_units.pop(event.unit, ()):
                    self._write_waiting(name)
            case _:
                return

    def _start(self) -> None:
        """Write the status of units that have work to do and wait for other units."""
        for name, unit in self._rollout.units.items():
            if not unit.needs_lease or self._tracker(name) is None:
                continue
            for blocking_unit in blocking_units(unit):
                self._waiting_units.setdefault(blocking_unit, set()).add(name)
            self._write_waiting(name)

    def _write_waiting(self, name: UnitId) -> None:
        tracker, unit = self._trackers.get(name), self._rollout.units.get(name)
        if tracker is None or unit is None or tracker.is_operated or unit.ended:
            return
        if blocking_units(unit):
            self._schedule_write(name, tracker)

    def _track(self, name: UnitId, tracker: UnitTracker, event: Event) -> None:
        if event.type is EventType.STEP_GATING:
            tracker.gating_steps.add(event.step)
        elif event.type is EventType.STEP_FAILED and not tracker.reason:
            tracker.reason, tracker.message = event.reason, event.message
            tracker.failed_by_gate = event.step in tracker.gating_steps
            tracker.failed_by_test = self._context.steps[event.step].is_test
        if not self._context.leases.has(name):
            return
        if not tracker.is_operated:
            tracker.is_operated, tracker.started_at = True, event.at
            self._schedule_write(name, tracker)
        elif event.type in {EventType.GATE_WAITING, EventType.STEP_FAILED}:
            self._schedule_write(name, tracker)

    def _on_resource_written(self, object_ref: ClusterRef) -> None:
        """Write the pending status of a unit whose resource now exists."""
        name = self._units_by_resource.get(object_ref)
        tracker = None if name is None else self._trackers[name]
        if name is not None and tracker is not None and tracker.is_missing:
            tracker.is_missing = False
            if tracker.result:
                self._delayed_writes += 1
                self._procedures.run(self._write_status(name, tracker), self._on_delayed_write)
            else:
                self._schedule_write(name, tracker)

    def _on_delayed_write(self, _: None) -> None:
        self._delayed_writes -= 1

    def finish(self, name: UnitId, result: str) -> Procedure[None]:
        """Write the final status of a unit.

        For a unit that was only compared, only if the status changes.

        The health of a parent depends on its children, so their final statuses are written
        first.
        """
        tracker = self._tracker(name)
        if tracker is None:
            return
        unit = self._rollout.units[name]
        while not self._is_stopping and any(map(self._is_final_pending, self._children(unit))):
            yield Pause(Ms(self._context.world.now() + POLL_INTERVAL))
        if tracker.is_operated or not self._is_leased_by_other(name):
            tracker.verdicts = yield from evaluate_changed(self._context, unit)
            tracker.extra_objects = yield from find_unpruned(self._context, unit)
            reason = self._context.settings.excluded.get(name) or blocked_message(unit)
            tracker.message = tracker.message or reason
            tracker.result = result
            yield from self._write_status(name, tracker)
        tracker.is_final_written = True

    def _is_final_pending(self, name: UnitId) -> bool:
        """Return whether a unit has ended and its final status is not written yet."""
        return self._rollout.units[name].ended and not self._trackers[name].is_final_written

    def _children(self, unit: UnitRun) -> list[UnitId]:
        """Return the child units whose resources are objects of this unit."""
        object_refs = (run.object_ref for step in unit.steps for run in step.items)
        names = (
            self._units_by_resource[object_ref]
            for object_ref in object_refs
            if object_ref in self._units_by_resource
        )
        units = self._rollout.units
        return [name for name in names if units[name].unit.parent == unit.unit.id]

    def stop(self, reason: str) -> Procedure[None]:
        """Write the final status of units that were in progress when the rollout was stopped."""
        self._is_stopping = True
        for name, tracker in self._trackers.items():
            if tracker.is_operated and not tracker.result:
                tracker.message = tracker.message or reason
                yield from self.finish(name, RolloutOutcome.STOPPED)
        while self._delayed_writes:
            yield Pause(Ms(self._context.world.now() + POLL_INTERVAL))
        for name, tracker in [*self._trackers.items()]:
            if tracker.has_child_update:
                tracker.has_child_update = False
                yield from self._write_status(name, tracker)

    def _is_leased_by_other(self, name: UnitId) -> bool:
        record = self._context.leases[name].record
        return bool(record.holder) and not record.is_ours

    def _tracker(self, name: UnitId) -> UnitTracker | None:
        """Return the tracker of a unit.

        None if the unit has no resource whose status is written.
        """
        tracker = self._trackers.get(name)
        if tracker is not None or self._status_builder is None:
            return tracker
        object_ref = self._status_builder.unit_resource_ref(name)
        if object_ref is None:
            return None
        served = self._context.live_cache.served_kinds.get(object_ref.cluster, {})
        if not self._context.live_cache.is_tracked(object_ref):
            object_ref = ClusterRef(object_ref.cluster, with_served_version(object_ref.ref, served))
        if object_ref.ref.kind not in served:
            return None
        self._units_by_resource[object_ref] = name
        tracker = self._trackers[name] = UnitTracker(object_ref, self._context.world.now())
        return tracker

    def _schedule_write(self, name: UnitId, tracker: UnitTracker) -> None:
        """Schedule a status write of a running unit, rate-limited and one at a time."""
        if tracker.is_writing or tracker.result:
            tracker.has_update = True
            return
        tracker.is_writing, tracker.has_update = True, False
        self._procedures.run(
            self._write_when_due(name, tracker), lambda _: self._on_written(name, tracker)
        )

    def _write_when_due(self, name: UnitId, tracker: UnitTracker) -> Procedure[None]:
        not_before = self._next_write_at(name, tracker)
        if self._context.world.now() < not_before:
            yield Pause(not_before)
        if not tracker.result:
            yield from self._write_status(name, tracker)

    def _next_write_at(self, name: UnitId, tracker: UnitTracker) -> Ms:
        objects = sum(len(step.items) for step in self._rollout.units[name].steps)
        return (
            Ms(tracker.written_at + MIN_INTERVAL + objects * INTERVAL_PER_OBJECT)
            if tracker.written_at
            else Ms(0)
        )

    def _on_written(self, name: UnitId, tracker: UnitTracker) -> None:
        tracker.is_writing = False
        if tracker.has_update and not tracker.result:
            self._schedule_write(name, tracker)

    def _write_status(self, name: UnitId, tracker: UnitTracker) -> Procedure[None]:
        """Patch the status of a unit resource; on a conflict, read the resource again and retry."""
        result, live = tracker.result, self._context.live_cache.objects.get(tracker.resource_ref)
        if live is None and not self._context.live_cache.is_tracked(tracker.resource_ref):
            live = yield from self._read_resource(name, tracker)
        for _ in range(WRITE_TRIES):
            if live is None:
                tracker.is_missing = True
                return
            if tracker.result != result or self._status_builder is None:
                return  # the final status is already written
            unit_resource = object_body(live)
            progress = build_progress(self._context, self._rollout.units[name], tracker)
            patch = self._status_builder.build_patch(progress, unit_resource)
            if patch is None:
                return
            tracker.written_at = self._context.world.now()
            (outcome,) = yield (
                ApiCall(
                    tracker.resource_ref.cluster,
                    self._patch_write(tracker.resource_ref, live, patch),
                ),
            )
            if isinstance(outcome, messages.Success) and outcome.live is not None:
                self.unreported.pop(name, None)
                self._context.live_cache.store(tracker.resource_ref, outcome.live)
                self._update_parent(name)
                yield from self._create_events(name, tracker, patch)
                return
            if not _is_retryable(outcome):
                self._record_failure(name, outcome)
                return
            live = yield from self._read_resource(name, tracker)
        self.unreported[name] = "another client keeps changing it"

    def _update_parent(self, name: UnitId) -> None:
        """Schedule an update of the parent if its status includes the status of its children."""
        parent = self._rollout.units[name].unit.parent
        if (
            parent is None
            or self._status_builder is None
            or not self._status_builder.reflects_children(parent)
        ):
            return
        tracker = self._tracker(parent)
        if tracker is None or parent not in self._rollout.units:
            return
        tracker.has_child_update = True
        if not tracker.is_following_children:
            tracker.is_following_children = True
            self._procedures.run(self._write_child_updates(parent, tracker), lambda _: None)

    def _write_child_updates(self, name: UnitId, tracker: UnitTracker) -> Procedure[None]:
        """Write updates caused by children, rate-limited; the rest is written at the end."""
        while tracker.has_child_update:
            not_before = self._next_write_at(name, tracker)
            if self._context.world.now() < not_before:
                yield Pause(not_before)
            if tracker.has_child_update:
                tracker.has_child_update = False
                yield from self._write_status(name, tracker)
        tracker.is_following_children = False

    def _read_resource(self, name: UnitId, tracker: UnitTracker) -> Procedure[LiveObject | None]:
        (outcome,) = yield (ApiCall(tracker.resource_ref.cluster, Get(tracker.resource_ref.ref)),)
        if isinstance(outcome, messages.Success):
            return outcome.live
        if not isinstance(outcome, messages.NotFound):
            self._record_failure(name, outcome)
        return None

    def _patch_write(self, object_ref: ClusterRef, live: LiveObject, patch: StatusPatch) -> Write:
        served_kind = self._context.live_cache.served_kinds[object_ref.cluster][object_ref.ref.kind]
        return Write(
            verb=Verb.PATCH,
            patch_type=PatchType.MERGE,
            ref=object_ref.ref,
            body=patch.patch,
            subresource=STATUS if STATUS in served_kind.subresources else "",
            manager=patch.manager,
            uid=live.uid,
            resource_version=live.resource_version,
        )

    def _create_events(
        self, name: UnitId, tracker: UnitTracker, patch: StatusPatch
    ) -> Procedure[None]:
        calls = tuple(
            ApiCall(
                tracker.resource_ref.cluster,
                Write(verb=Verb.CREATE, ref=ref, body=body, manager=patch.manager),
            )
            for ref, body in patch.events
        )
        for outcome in (yield calls) if calls else ():
            if messages.is_error(outcome) and not isinstance(outcome, messages.AlreadyExists):
                self._record_failure(name, outcome)
                return

    def _record_failure(self, name: UnitId, outcome: messages.Outcome) -> None:
        message = outcome.message if messages.is_error(outcome) else "the response is not an object"
        self.unreported[name] = sanitize(message)


def _is_retryable(outcome: messages.Outcome) -> bool:
    """Return whether a failed write is worth a retry: a conflict, or a lost response."""
    if isinstance(outcome, messages.NoResponse):
        return outcome.reason is not messages.LossReason.CANCELLED
    return isinstance(outcome, messages.Conflict | messages.NotFound)
