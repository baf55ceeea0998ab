"""The driver loop: World messages in, decisions, commands out, until every unit has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tidegate.engine import messages
from tidegate.engine.cluster.preflight.checks import ObjectFailure, failure_events
from tidegate.engine.cluster.procedures import Pause, Procedure, ProcedureRunner
from tidegate.engine.context import RolloutContext, RolloutSettings
from tidegate.engine.decide import decide
from tidegate.engine.evaluator import ObjectEvaluator
from tidegate.engine.executor import CommandExecutor
from tidegate.engine.journal_cleanup import remove_failed_hooks, remove_hook_entries, remove_object
from tidegate.engine.preparation import Preparation, prepare_rollout, prepare_running_rollout
from tidegate.engine.records.heartbeat import Heartbeat
from tidegate.engine.records.unit_lease import POLL_INTERVAL, UnitLease, takeover_message
from tidegate.engine.state.rollout import Rollout
from tidegate.engine.status.writer import StatusWriter
from tidegate.model.plans.plan import Plan, PlannedUnit
from tidegate.model.rollouts.event import Event, EventType, RolloutOutcome
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.release_history import RevisionOutcome
from tidegate.model.units.unit import UnitId
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import error_from_outcome
from tidegate.world.messages import (
    ErrorOutcome,
    Message,
    NotServed,
    Response,
    WatchEnded,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.requests import MAX_DISCOVERY_AGE

LEASED = "LeaseHeld"
NO_RESPONSE = "NoResponse"
UNKNOWN_MESSAGE = "the cluster did not answer"
SILENT_STOP_LIMIT = Ms(10 * SECOND)
"""How long after a request to stop a rollout ends if a cluster does not answer."""
STOP_LIMIT = Ms(30 * SECOND)
"""The same if all clusters answer."""
Decide: TypeAlias = Callable[[Rollout, messages.Input, Ms], messages.Decision]


class _StopRequest(msgspec.Struct, frozen=True):
    """A request to stop the rollout."""

    at: Ms
    reason: str


class Driver:
    """One running rollout in a World that it shares with others.

    Call `run_once` until `closed` is set.
    """

    def __init__(
        self,
        world: Dispatcher,
        plan: Plan,
        evaluator: ObjectEvaluator,
        settings: RolloutSettings,
        emit: Callable[[Event], None],
        decide: Decide = decide,
    ) -> None:
        self.closed = False
        self.result = ""
        self.is_superseded = False
        """Whether this rollout gave way to another one."""
        self.is_timed_out = False
        """Whether the rollout was stopped because its time was up."""
        self.is_unreachable = False
        """Whether the rollout ended because a cluster did not answer for too long."""
        self.is_cut_off = False
        """Whether the rollout ended without waiting for the answers of a cluster."""
        self._decide = decide
        self.world = world
        self._plan = self._requested_plan = plan
        self._excluded = settings.excluded
        self._emit = emit
        self._context = RolloutContext(
            world, evaluator, settings, self._emit_unit_event, self._on_lease_lost
        )
        self._client = world.client()
        self._procedures = ProcedureRunner(self._client, self._context.write_deadline)
        self._rollout = Rollout()
        self._inbox: deque[messages.Input] = deque()
        self._executor = CommandExecutor(self._context, self._procedures, self._inbox.append)
        self._status_writer = StatusWriter(
            self._context, self._procedures, self._rollout, settings.status_builder
        )
        self._wake_at: Ms | None = None
        self._stop_request: _StopRequest | None = None
        self._started = False
        self._ending_units = 0
        """Number of units whose lease is being released."""
        self._failures: dict[UnitId, str] = {}
        """First failure of each unit."""
        self._context.register(plan.units, plan.steps, digest=plan.digest)

    def open(self) -> None:
        """Start preparing the plan."""
        preparation = prepare_rollout(
            self._context, self._plan, max_discovery_age=MAX_DISCOVERY_AGE
        )
        self._procedures.run(preparation, self._on_prepared)
        self._process_inbox()

    async def run_once(self, until: Ms | None = None) -> None:
        """Wait for World messages, at most until `until`, and process them."""
        deadlines = [deadline for deadline in (self.wake_at, until) if deadline is not None]
        for message in await self._client.wait(min(deadlines, default=None)):
            self.process(message)
        self.run_due()

    def process(self, message: Message) -> None:
        """Process one World message."""
        match message:
            case Response():
                self._procedures.deliver(message.request_id, message.outcome)
            case WatchEnded(outcome=error) if error is not None:
                cluster = self._procedures.watches.pop(message.request_id, None)
                if not self._procedures.deliver(message.request_id, error) and cluster is not None:
                    self._handle_watch_error(cluster, error)
            case WatchEvent():
                self._procedures.record_event(message.request_id)
                cluster = self._procedures.watches.get(message.request_id)
                if cluster is not None:
                    self._handle_watch_event(cluster, message)
            case _:
                pass
        self._process_inbox()

    def _handle_watch_error(self, cluster: str, error: ErrorOutcome) -> None:
        """Rediscover kinds if the watched kind is no longer served; raise any other watch error.

        The objects of a kind that is no longer served are gone, and their steps fail.
        """
        if not isinstance(error, NotServed):
            raise error_from_outcome(error, "watching the cluster", location=self._context.location)
        self._procedures.run(self._context.live_cache.rediscover_kinds(cluster), lambda _: None)

    def run_due(self) -> None:
        """Run everything that is due: paused procedures, renewals, journal writes and timers."""
        if self.closed:
            return
        now = self.world.now()
        self._procedures.contacts.update(now)
        self._procedures.resume_due(now)
        self._maintain_leases(now)
        if self._wake_at is not None and now >= self._wake_at:
            self._inbox.append(messages.TimerElapsed())
        self._process_inbox()
        if self._gives_up_at is not None and now >= self._gives_up_at:
            self._give_up()

    def _report_contacts(self) -> None:
        """Emit which clusters do not answer, and which answer again."""
        now = self.world.now()
        for change in self._procedures.contacts.take_changes(now):
            event_type, reason = EventType.CLUSTER_WAITING, NO_RESPONSE
            if not change.message:
                event_type, reason = EventType.CLUSTER_ANSWERED, ""
                if self._rollout.units:
                    self._inbox.appendleft(messages.ClusterAnswered(change.cluster, change.silence))
            cluster, message = change.cluster, change.message
            self._emit(Event(now, event_type, reason=reason, message=message, cluster=cluster))

    @property
    def _gives_up_at(self) -> Ms | None:
        """When the rollout ends although calls are in flight; None if it waits for them."""
        silent_since = self._procedures.contacts.silent_since
        if self._stop_request is not None:
            limit = STOP_LIMIT if silent_since is None else SILENT_STOP_LIMIT
            return Ms(self._stop_request.at + limit)
        patience = self._context.settings.cluster_patience
        if silent_since is None or patience is None:
            return None
        return Ms(silent_since + patience)

    def _give_up(self) -> None:
        """End at once. What is in flight is not known, and the journal stays as it is."""
        now, silences = self.world.now(), self._procedures.contacts.describe_silent()
        self.is_cut_off = True
        self.is_unreachable = self._stop_request is None and not self.result
        for run in self._rollout.unknown_writes(self._procedures.cancel_all()):
            step, ref = run.step.step, run.item.ref
            event = Event(now, EventType.OBJECT_UNKNOWN, step.id, ref, NO_RESPONSE, UNKNOWN_MESSAGE)
            self._emit(replace(event, unit=step.unit, cluster=step.cluster))
        if self.result:
            self.closed = True
            return
        reasons = [] if self._stop_request is None else [self._stop_request.reason]
        message = "; ".join((*reasons, *silences))
        self._finish_now(Event(now, EventType.ROLLOUT_FINISHED, reason="stopped", message=message))

    @property
    def wake_at(self) -> Ms | None:
        """Time of the next due action; None if there is none."""
        times = [self._wake_at, self._procedures.wake_at, self._context.leases.flush_at]
        times += [self._procedures.contacts.next_update, self._gives_up_at]
        times += [
            cluster_leases.heartbeat.wake_at
            for cluster_leases in self._context.leases.leases_by_cluster.values()
        ]
        return min((time for time in times if time is not None), default=None)

    def _maintain_leases(self, now: Ms) -> None:
        """Renew heartbeats and write journals that are due."""
        for cluster_leases in self._context.leases.leases_by_cluster.values():
            heartbeat = cluster_leases.heartbeat
            if heartbeat.is_renewal_due(now):
                on_renewed = partial(self._on_renewed, heartbeat, heartbeat.incarnation)
                self._procedures.run(heartbeat.renew(self.world.now), on_renewed)
            if heartbeat.has_just_expired(now):
                self._cancel_writes(heartbeat.cluster)
        for lease in self._context.leases.pop_due(now):
            self._procedures.run(lease.flush(self.world.now), lambda _: None)

    def stop(self, reason: str) -> None:
        """Start nothing more; what is in progress finishes in order, within a limit."""
        self._stop_request = self._stop_request or _StopRequest(self.world.now(), reason)
        if self._started:
            self._inbox.append(messages.StopRequested(reason))
            self._process_inbox()
        elif not self.result:
            self._procedures.cancel_all()
            self._context.leases.reset_procedures()
            now = self.world.now()
            self._emit_event(
                Event(now, EventType.ROLLOUT_FINISHED, reason="stopped", message=reason)
            )
        self._client.wake()

    @property
    def unreported(self) -> dict[UnitId, str]:
        """Units whose status could not be written, with the reason."""
        return self._status_writer.unreported

    def supersede(self, plan: Plan, excluded: Mapping[UnitId, str] | None = None) -> bool:
        """Continue with a newer plan.

        Return False if this rollout has ended and cannot take the plan.

        `excluded` maps units that cannot be started to the reason.
        """
        if self.result:
            return False
        self._requested_plan, self._excluded = plan, excluded or {}
        self._context.register(plan.units, plan.steps, digest=plan.digest)
        self._context.leases.set_plan(plan.digest)
        if self._started:
            self._inbox.append(messages.PlanSuperseded(None))
            self._procedures.run(prepare_running_rollout(self._context, plan), self._on_prepared)
            self._process_inbox()
            self._client.wake()
        return True

    def finish_refresh(self, unit: UnitId, message: str = "") -> None:
        """Continue a unit as planned; with a message, the unit cannot continue."""
        failure = messages.Failure("RefreshFailed", message, final=True) if message else None
        self._inbox.append(messages.RefreshFinished(unit, failure))
        self._process_inbox()
        self._client.wake()

    def _on_prepared(self, preparation: Preparation) -> None:
        plan = preparation.plan
        if preparation.requested is not self._requested_plan:
            if not self._started:
                self._procedures.run(
                    prepare_rollout(self._context, self._requested_plan), self._on_prepared
                )
            return
        self._emit_object_failures(EventType.OBJECT_REFUSED, preparation.failures)
        if self._context.settings.preflight_only:
            self._finish_now(Event(self.world.now(), EventType.ROLLOUT_FINISHED, reason="stopped"))
            return
        skips_faulty_units = self._context.settings.skip_faulty_units and not self._started
        if not preparation.failures or (skips_faulty_units and preparation.due_units):
            self._emit_object_failures(EventType.OBJECT_ADOPTED, preparation.adopted)
            self._emit_settled_steps(preparation)
            excluded_items = self._excluded.items()
            excluded = {
                unit: messages.Failure("Excluded", reason, final=True)
                for unit, reason in excluded_items
            }
            excluded |= {step.unit: failure for step, _, failure in reversed(preparation.failures)}
            due_units = preparation.due_units
            start_input = (
                messages.PlanSuperseded(plan, due_units, excluded)
                if self._started
                else messages.RolloutStarted(
                    plan, excluded, due_units, preparation.units_in_progress
                )
            )
            self._inbox.append(start_input)
            self._inbox += (
                messages.ApprovalGranted(unit=approved_unit)
                for approved_unit in self._context.settings.approved
            )
            self._started, self._plan = True, plan
            self._inbox += (
                messages.StopRequested(reason, unit)
                for unit, reason in self._context.leases.lost.items()
            )
            return
        self._reject_plan()

    def _emit_object_failures(self, event_type: EventType, objects: list[ObjectFailure]) -> None:
        now, find_origin = self.world.now(), self._context.object_origin
        for event in failure_events(event_type, objects, now, find_origin):
            self._emit(event)

    def _emit_settled_steps(self, preparation: Preparation) -> None:
        """Report the steps that the journal has removed from the plan."""
        remaining = {step.id for step in preparation.plan.steps if not step.is_placeholder}
        for step in preparation.requested.steps:
            is_optional = step.is_placeholder or step.only_on_failure
            if not is_optional and step.id not in remaining:
                now, unit = self.world.now(), step.unit
                self._emit(Event(now, EventType.STEP_SETTLED, step.id, unit=unit))

    def _reject_plan(self) -> None:
        """Start nothing of a plan that failed preflight."""
        now = self.world.now()
        if self._started:
            self._inbox.append(messages.StopRequested("the newer plan failed preflight"))
        else:
            self._finish_now(Event(now, EventType.ROLLOUT_FINISHED, reason="invalid"))

    def _finish_now(self, final_event: Event) -> None:
        self._emit(final_event)
        self.result = final_event.reason
        self.closed = True
        self._procedures.cancel_all()

    def _shut_down(self) -> Procedure[None]:
        while self._ending_units:
            yield Pause(Ms(self.world.now() + POLL_INTERVAL))
        for unit in self._rollout.units.values():
            if unit.failed and not unit.ended:
                remove_failed_hooks(self._context, unit)
        for name, run in self._rollout.units.items():
            if not run.ended:
                yield from self._finish_release(name, RolloutOutcome.STOPPED)
        yield from self._status_writer.stop(self._rollout.stop_reason)
        yield from self._context.leases.release_all()

    def _on_shut_down(self, _: None) -> None:
        self.closed = True
        self._procedures.cancel_all()

    def _cancel_writes(self, cluster: str) -> None:
        """Cancel pending writes in a cluster: another process may hold our units now."""
        is_managed = self._context.is_managed
        self._procedures.cancel_writes(lambda name, ref: name == cluster and is_managed(name, ref))

    def _on_renewed(self, heartbeat: Heartbeat, incarnation: int, _: None) -> None:
        if heartbeat.incarnation != incarnation:
            self._cancel_writes(heartbeat.cluster)
        requested = self._context.leases.process_requests(heartbeat)
        for unit in requested.yielded:
            self._on_lease_lost(unit, takeover_message(unit))
        if self._context.leases.is_waiting:
            self._inbox += map(messages.LeaseRequested, requested.lendable)

    def _on_lease_lost(self, unit: UnitId, reason: str) -> None:
        self.is_superseded = True
        if self._started:  # before the start, lost units are reported afterwards
            self._inbox.append(messages.StopRequested(reason, unit))

    def _emit_unit_event(self, event_type: EventType, unit: UnitId, message: str) -> None:
        reason = LEASED if event_type is EventType.UNIT_WAITING else ""
        self._emit(Event(self.world.now(), event_type, reason=reason, message=message, unit=unit))

    def _handle_watch_event(self, cluster: str, event: WatchEvent) -> None:
        approved = self._context.approvals.apply_watch_event(cluster, event)
        if approved is not None:
            self._inbox.append(messages.ApprovalGranted(unit=approved))
        object_ref = self._context.live_cache.apply_watch_event(cluster, event)
        if object_ref is None or not self._started or object_ref not in self._context.owners:
            return  # prune candidates are watched before they have a step
        self._procedures.run(
            self._context.evaluate_health(object_ref, event.live), self._inbox.append
        )
        if event.type is WatchEventType.DELETED:
            self._inbox.append(messages.ObjectDeleted(object_ref, event.live.uid))

    def _process_inbox(self) -> None:
        """Decide on every pending input and run the resulting commands."""
        self._report_contacts()
        while self._inbox and not self._rollout.ended:
            decision = self._decide(self._rollout, self._inbox.popleft(), self.world.now())
            self._wake_at = decision.wake_at
            for command in decision.commands:
                self._executor.execute(command)
            # Events are emitted after the commands: the journal must have the last open gates.
            for event in decision.events:
                self._emit_event(event)

    def _finish_unit(self, name: UnitId, result: str) -> None:
        """Mark the unit as completed, so that its hooks do not run again, and release it."""
        unit, lease = self._rollout.units[name], self._context.leases[name]
        if result == RolloutOutcome.PASSED and lease.may_be_holder:
            lease.record.mark_completed(unit.unit.digest)
        if result == RolloutOutcome.FAILED:
            remove_failed_hooks(self._context, unit)
        self._ending_units += 1
        self._procedures.run(self._release_unit(unit.unit, lease, result), self._on_unit_released)

    def _release_unit(self, unit: PlannedUnit, lease: UnitLease, result: str) -> Procedure[None]:
        """Write the final status while the unit is still leased, then release the lease.

        The approval is deleted after the journal is written: a process killed in between would
        otherwise need a new approval.
        """
        yield from self._finish_release(unit.id, result)
        yield from self._status_writer.finish(unit.id, result)
        yield from lease.release(self.world.now)
        if result == RolloutOutcome.PASSED:
            yield from self._context.approvals.delete_approval(unit.id, unit.cluster)

    def _finish_release(self, name: UnitId, result: str) -> Procedure[None]:
        """Record the outcome of the release, if the unit has a history and we hold its lease."""
        run, now = self._rollout.units[name], self.world.now()
        if not self._context.leases.has(name):
            return
        message = self._failures.get(name) or run.stop_reason or self._rollout.stop_reason
        outcome = RevisionOutcome(result == RolloutOutcome.PASSED, message, run.hook_runs(now))
        remediation_outcome = RevisionOutcome(
            run.is_remediated, message, run.hook_runs(now, on_failure=True)
        )
        failure = yield from self._context.histories.finish(name, outcome, remediation_outcome, now)
        if failure is not None:
            self._status_writer.unreported[name] = (
                f"the release record was not completed: {failure.message}"
            )

    def _on_unit_released(self, _: None) -> None:
        self._ending_units -= 1

    def _emit_event(self, event: Event) -> None:
        self._emit(event)
        self._status_writer.on_event(event)
        steps = self._context.steps
        match event.type:
            case EventType.OBJECT_PRUNED if event.ref is not None:
                remove_object(self._context, steps[event.step], event.ref)
            case EventType.RETRY_SCHEDULED if self._rollout.steps[
                event.step
            ].semantics.retry.restarts_unit:
                remove_hook_entries(
                    self._context, self._context.steps_for_unit(steps[event.step].unit)
                )
            case EventType.STEP_FAILED if event.unit is not None:
                self._failures.setdefault(event.unit, event.message or event.reason)
            case EventType.UNIT_FINISHED if event.unit is not None:
                self._finish_unit(event.unit, event.reason)
            case EventType.ROLLOUT_FINISHED:
                self.result = event.reason
                self._procedures.run(self._shut_down(), self._on_shut_down)
            case _:
                pass


async def drive(driver: Driver, *, until: Ms | None = None) -> str:
    """Run a rollout to its end, or until a time, and return its result.

    Other rollouts of the same World run in their own tasks.
    """
    driver.open()
    while not driver.closed:
        await driver.run_once(until)
        if until is not None and driver.world.now() >= until:
            until = None
            driver.is_timed_out = not driver.result
            driver.stop("timed out")
    return driver.result
