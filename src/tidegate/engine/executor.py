"""Executor of commands: runs each as a procedure and sends its result back as an input."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import NamedTuple

import msgspec

from tidegate.engine import messages
from tidegate.engine.cluster.compare import WRITE_RESULTS, status_digest
from tidegate.engine.cluster.hooks import (
    announced_entry,
    delete_hooks,
    is_announced,
    remove_finalizers,
)
from tidegate.engine.cluster.preflight.checks import ObjectFailure
from tidegate.engine.cluster.preflight.probes import probe
from tidegate.engine.cluster.prerequisites import planned_kinds, wait_until_served
from tidegate.engine.cluster.procedures import (
    ApiCall,
    Pause,
    Procedure,
    ProcedureRunner,
    impersonate,
)
from tidegate.engine.cluster.writes import (
    apply_object,
    apply_unshared,
    delete_object,
    failure_from_outcome,
    written_object,
)
from tidegate.engine.context import RolloutContext, raise_for_cluster
from tidegate.engine.journal_cleanup import remove_deleted_items, remove_hook_entries
from tidegate.engine.preparation import expand, failure_with_object, prepare_unit_again
from tidegate.model.k8s.objects import ClusterRef, Kind, LiveObject, Ref, object_body
from tidegate.model.plans.plan import ItemAction, PlanItem, PlannedUnit, Step, step_items
from tidegate.model.rollouts.journal import JournalEntry
from tidegate.model.times import Ms
from tidegate.model.units.release_history import RevisionOutcome
from tidegate.model.units.unit import UnitId
from tidegate.world.messages import (
    AlreadyExists,
    Delivery,
    ErrorOutcome,
    Invalid,
    LossReason,
    NoResponse,
    NotFound,
    Outcome,
    Success,
)
from tidegate.world.requests import Get

LEASE_CHANGED = NoResponse(
    Delivery.NOT_SENT, LossReason.CANCELLED, "another rollout acquired the unit in between"
)
"""Outcome of a write decided before another rollout changed the unit; its step restarts."""
LEASE_LOST = messages.Failure("Superseded", "another rollout holds the unit now")
SCHEMA_TIMEOUT = Ms(3_000)
SCHEMA_RETRY_INTERVAL = Ms(200)
"""Retry interval while a server loads a changed CRD."""
UNKNOWN_FIELD = "unknown"


class _Existing(NamedTuple):
    """An object that was to be created if it is missing, and that another client created first."""

    read: Success


def _read_existing(
    object_ref: ClusterRef, outcome: AlreadyExists
) -> Procedure[Outcome | _Existing]:
    """Read an object that exists by now; two units may create one namespace at the same time."""
    (current,) = yield (ApiCall(object_ref.cluster, Get(object_ref.ref)),)
    return _Existing(current) if isinstance(current, Success) else outcome


class CommandExecutor:
    """Executor of the commands of a rollout."""

    def __init__(
        self,
        context: RolloutContext,
        procedures: ProcedureRunner,
        send_input: Callable[[messages.Input], None],
    ) -> None:
        self._context = context
        self._procedures = procedures
        self._send_input = send_input
        self._compared_steps: set[str] = set()
        """Steps that have been compared and therefore validate their own objects."""
        self._acquiring: set[UnitId] = set()
        """Units whose lease we wait for, or have just acquired."""

    def execute(self, command: messages.Command) -> None:
        """Execute one command."""
        context = self._context
        match command:
            case messages.CompareStep():
                self._compared_steps.add(command.step)
                self._procedures.run(self._compare_step(command), self._send_input)
            case messages.Preflight():
                recheck = context.preflight_checker.check_deferred(
                    command.object_ref, self._compared_steps
                )
                self._procedures.run(recheck, self._on_preflight_failures)
            case (
                messages.Apply()
                | messages.Delete()
                | messages.ReadStatus()
                | messages.Probe()
                | messages.Verify()
            ):
                self._execute_object_command(command)
            case messages.Expand():
                self._procedures.run(
                    expand(self._context, context.steps[command.step]), self._send_input
                )
            case (
                messages.AcquireLease()
                | messages.ReleaseLease()
                | messages.AwaitApproval()
                | messages.Refresh()
            ):
                self._execute_unit_command(command)
            case messages.SaveJournal():
                self._save_journal(command)
            case messages.DeleteHooks():
                self._delete_hooks(command)

    def _execute_unit_command(
        self,
        command: messages.AcquireLease
        | messages.ReleaseLease
        | messages.AwaitApproval
        | messages.Refresh,
    ) -> None:
        """Execute a command about a unit. A second `AcquireLease` only updates the pending one."""
        if isinstance(command, messages.Refresh):
            self._procedures.run(self._record_attempt(command), partial(self._refresh, command))
            return
        lease = self._context.leases[command.unit]
        if isinstance(command, messages.AwaitApproval):
            procedure = self._context.approvals.wait(command.unit, lease.record.cluster)
            self._procedures.run(procedure, self._on_approval)
            return
        if isinstance(command, messages.ReleaseLease):
            self._acquiring.discard(command.unit)
            self._procedures.run(
                lease.release(self._context.world.now, keeps_progress=True), lambda _: None
            )
            return
        lease.is_needed |= command.is_needed
        if command.unit not in self._acquiring:
            self._acquiring.add(command.unit)
            self._procedures.run(self._acquire_lease(command), self._on_lease_acquired)

    def _record_attempt(self, command: messages.Refresh) -> Procedure[messages.Failure | None]:
        """Record the outcome of the last attempt before the source is refreshed.

        On-failure hooks are forgotten, so that they run again for the next failure.
        """
        steps = self._context.steps_for_unit(command.unit)
        remove_hook_entries(self._context, (step for step in steps if step.only_on_failure))
        histories, remediated = (
            self._context.histories,
            RevisionOutcome(passed=True, hooks=command.hooks),
        )
        failure, now = command.failure, self._context.world.now()
        return (yield from histories.record_attempt(command.unit, failure, remediated, now))

    def _refresh(self, command: messages.Refresh, failure: messages.Failure | None) -> None:
        request_refresh, unit = self._context.settings.request_refresh, command.unit
        if failure is not None:
            reason = f"the release record was not completed: {failure.message}"
            self._send_input(messages.StopRequested(reason, unit))
        elif request_refresh is None:
            self._send_input(messages.RefreshFinished(unit))
        else:
            request_refresh(command)

    def _acquire_lease(
        self, command: messages.AcquireLease
    ) -> Procedure[messages.LeaseAcquired | None]:
        """Acquire the lease of a unit; prepare the unit again if other processes changed it.

        If the heartbeat expires during the preparation, another process may hold the lease. It
        is then acquired again, unless it was released in the meantime.
        """
        context, name = self._context, command.unit
        is_stale, preparation = False, None
        while name in self._acquiring:
            is_stale |= yield from context.acquire_lease(name, is_needed=command.is_needed)
            if is_stale and command.is_unstarted and context.leases.has(name):
                preparation = yield from prepare_unit_again(context, name)
            if (
                context.leases.has(name)
                or name in context.leases.lost
                or context.leases[name].is_releasing
            ):
                break
        self._acquiring.discard(name)
        if not context.leases.has(name):
            return None  # released in between, which was reported
        if preparation is None:
            return messages.LeaseAcquired(name)
        for object_failure in preparation.failures:
            return messages.LeaseAcquired(name, failure=failure_with_object(object_failure))
        return messages.LeaseAcquired(name, preparation.plan)

    def _on_lease_acquired(self, acquired: messages.LeaseAcquired | None) -> None:
        if acquired is not None:
            self._send_input(acquired)

    def _on_approval(self, result: UnitId | ErrorOutcome | None) -> None:
        if isinstance(result, UnitId):
            self._send_input(messages.ApprovalGranted(unit=result))
        else:
            raise_for_cluster(result, self._context)

    def _delete_hooks(self, command: messages.DeleteHooks) -> None:
        context, unit = self._context, command.unit
        steps = context.steps_for_unit(unit)
        procedure = delete_hooks(steps, context.live_cache, context.world.now, command)
        identity = context.comparer.units[unit].policy.identity
        self._procedures.run(
            impersonate(identity, procedure),
            lambda deleted: self._send_input(messages.HooksDeleted(unit, deleted)),
        )

    def _execute_object_command(self, command: messages.ObjectCommand) -> None:
        context = self._context
        match command:
            case messages.Apply():
                live = context.live_cache.objects.get(command.object_ref)
                self._procedures.run(
                    self._apply(command, live), partial(self._on_applied, command, live)
                )
            case messages.Delete():
                procedure = self._delete(command)
                self._procedures.run(procedure, partial(self._on_deleted, command))
            case messages.ReadStatus():
                self._procedures.run(self._read_status(command), self._send_input)
            case messages.Probe():
                planned = context.planned_items(command.object_ref.cluster)
                probe_procedure = probe(command.object_ref, context.live_cache, planned)
                self._procedures.run(probe_procedure, partial(self._on_probed, command))
            case messages.Verify():
                self._verify(command)

    def _compare_step(self, command: messages.CompareStep) -> Procedure[messages.StepCompared]:
        """Compare the objects of a step; objects that are not cached yet are read first."""
        context = self._context
        step = context.steps[command.step]
        object_refs = [ClusterRef(step.cluster, item.ref) for item in step_items(step)]
        failure = yield from self._sync_cache(object_refs, planned_kinds(step_items(step)))
        if failure is not None:
            return messages.StepCompared(step.id, failure=failure)
        compared_items = context.compared_items(step)
        for object_failure in (
            yield from context.preflight_checker.find_failures(compared_items, is_last_check=True)
        ):
            return messages.StepCompared(step.id, failure=failure_with_object(object_failure))
        writes = any(
            map(context.will_be_modified, compared_items)
        ) or context.histories.starts_revision(step)
        if writes and (yield from self._acquire_for_step(command)):
            if step.unit in context.leases.lost:
                return messages.StepCompared(step.id, failure=LEASE_LOST)
            return (yield from self._compare_step(command))
        start_failure = yield from self._announce(step, command.outcome, writes=writes)
        if start_failure is not None:
            return messages.StepCompared(step.id, failure=start_failure)
        for object_ref in object_refs:
            live = context.live_cache.objects.get(object_ref)
            if live is not None:
                self._send_input((yield from context.evaluate_health(object_ref, live)))
        return messages.StepCompared(step.id, context.compare_step(step))

    def _acquire_for_step(self, command: messages.CompareStep) -> Procedure[bool]:
        """Acquire the lease before a write of a step.

        Return True if the cached state of the unit is stale.
        """
        unit = self._context.steps[command.step].unit
        if command.takes_slot:
            self._context.leases[unit].record_slot()
        return (yield from self._context.acquire_lease(unit))

    def _announce(
        self, step: Step, outcome: RevisionOutcome | None, *, writes: bool
    ) -> Procedure[messages.Failure | None]:
        """Start the release revision and record the hooks that are about to be created.

        A later process recognizes them by these records. Return the failure that prevents the
        start.
        """
        context = self._context
        failure = None
        if writes:
            failure = yield from context.histories.start(step, outcome, context.world.now())
        if failure is not None:
            return failure
        lease, entries = context.leases[step.unit], context.leases[step.unit].record.entries
        announced: dict[Ref, JournalEntry] = {}
        for _, item, compared in context.compared_items(step):
            entry_before = entries.get(item.ref) or JournalEntry()
            if (
                item.hook is not None
                and compared.result in WRITE_RESULTS
                and not is_announced(entry_before)
            ):
                announced[item.ref] = announced_entry(compared.live, entry_before)
        for ref, entry in announced.items():
            lease.record.set_entry(ref, entry)
        if announced:
            yield from lease.flush_all(context.world.now)
        return None

    def _on_preflight_failures(self, failures: list[ObjectFailure]) -> None:
        for object_failure in failures:
            step = object_failure[0]
            self._send_input(
                messages.PreflightFailed(step.id, step.digest, failure_with_object(object_failure))
            )

    def _sync_cache(
        self, object_refs: list[ClusterRef], defined_kinds: Container[Kind] = ()
    ) -> Procedure[messages.Failure | None]:
        """Watch kinds that were not served before; return a failure if they still are not.

        Kinds that the step itself defines are served after their CRD is written.
        """
        live_cache = self._context.live_cache
        unsynced = live_cache.find_unsynced(object_refs)
        error = None
        if not all(map(live_cache.is_served, unsynced)):
            error = yield from live_cache.discover_kinds(
                object_ref.cluster for object_ref in unsynced
            )
        if unsynced and error is None:
            error = yield from live_cache.sync(unsynced)
        if error is not None:
            return failure_from_outcome(error)
        for object_ref in unsynced:
            if not live_cache.is_served(object_ref) and object_ref.ref.kind not in defined_kinds:
                return messages.Failure(
                    "NotServed", f"the cluster does not serve `{object_ref.ref.kind}`"
                )
        return None

    def _apply(
        self, command: messages.Apply, live: LiveObject | None
    ) -> Procedure[Outcome | messages.Failure | _Existing]:
        """Apply an object, after making sure that we hold the lease of its unit."""
        context = self._context
        unit = context.owners[command.object_ref]
        if (yield from context.acquire_lease(unit.id)):
            return LEASE_CHANGED
        raise_for_cluster(
            (
                yield from wait_until_served(
                    command.object_ref, context.live_cache, context.world.now
                )
            ),
            context,
        )
        deadline = context.world.now() + SCHEMA_TIMEOUT
        while True:
            evaluator, urgent = context.evaluator, command.urgent
            write = apply_unshared if self._may_not_share(command.item, unit) else apply_object
            procedure = write(
                command.object_ref,
                command.item,
                unit,
                live=live,
                evaluator=evaluator,
                urgent=urgent,
            )
            outcome = yield from impersonate(unit.policy.identity, procedure)
            if isinstance(outcome, messages.Failure):
                return outcome
            if isinstance(outcome, AlreadyExists) and command.item.action is ItemAction.CREATE:
                return (yield from _read_existing(command.object_ref, outcome))
            if (
                not self._may_be_unloaded_crd(command.object_ref, outcome)
                or context.world.now() >= deadline
            ):
                return outcome
            yield Pause(Ms(context.world.now() + SCHEMA_RETRY_INTERVAL))

    def _may_not_share(self, item: PlanItem, unit: PlannedUnit) -> bool:
        is_managed = item.hook is None and item.action is ItemAction.APPLY
        return is_managed and unit.policy.fail_on_shared_resource

    def _may_be_unloaded_crd(self, object_ref: ClusterRef, outcome: Outcome) -> bool:
        """Return whether the server may not have loaded a CRD of this plan yet."""
        if not isinstance(outcome, Invalid) or all(
            cause.reason != UNKNOWN_FIELD for cause in outcome.causes
        ):
            return False
        return object_ref.ref.kind in planned_kinds(
            item for item, _ in self._context.planned_items(object_ref.cluster)
        )

    def _on_applied(
        self,
        command: messages.Apply,
        before: LiveObject | None,
        outcome: Outcome | messages.Failure | _Existing,
    ) -> None:
        context = self._context
        object_ref, item = command.object_ref, command.item
        if isinstance(outcome, _Existing):
            before, outcome = outcome.read.live, outcome.read
        if not isinstance(outcome, Success) or outcome.live is None:
            failure = (
                outcome
                if isinstance(outcome, messages.Failure)
                else failure_from_outcome(outcome, object_ref.ref)
            )
            self._send_input(messages.WriteFinished(command.step, object_ref, failure))
            return
        live = outcome.live
        context.live_cache.store(object_ref, live)
        unit, body = context.owners[object_ref], object_body(live)
        fingerprint, is_hook = (
            context.evaluator.compute_fingerprint(unit, item, body),
            item.hook is not None,
        )
        record = context.leases[unit.id].record
        entry_before = record.entries.get(item.ref) or JournalEntry()
        entry = JournalEntry(
            item.digest,
            fingerprint,
            live.uid,
            hook=is_hook,
            ran=entry_before.ran if is_hook else (),
        )
        if (entry_before.gate_digest, entry_before.uid) == (item.digest, live.uid):
            entry = msgspec.structs.replace(entry, gate_digest=entry_before.gate_digest)
        record.set_entry(item.ref, entry)
        self._procedures.run(context.evaluate_health(object_ref, live, body), self._send_input)
        applied = written_object(live, before=before, status=status_digest(live, body))
        self._send_input(messages.WriteFinished(command.step, object_ref, applied))

    def _delete(self, command: messages.Delete) -> Procedure[Outcome]:
        unit = self._context.owners[command.object_ref]
        if (yield from self._context.acquire_lease(unit.id)):
            return LEASE_CHANGED
        return (yield from impersonate(unit.policy.identity, self._delete_released(command)))

    def _delete_released(self, command: messages.Delete) -> Procedure[Outcome]:
        """Delete an object after removing finalizers of hooks and of emptied units."""
        live_cache, step = self._context.live_cache, self._context.steps[command.step]
        items = (item for item in step_items(step) if item.ref == command.object_ref.ref)
        finalizers = next((item.removed_finalizers for item in items), ())
        yield from remove_finalizers(
            (command.object_ref,), live_cache, self._context.world.now, finalizers
        )
        live = live_cache.objects.get(command.object_ref)
        return (
            yield from delete_object(command.object_ref, command.uid, command.propagation, live)
        )

    def _on_deleted(self, command: messages.Delete, outcome: Outcome) -> None:
        match outcome:
            case Success(live=LiveObject() as live):
                deleted = written_object(live, before=None, status="")
                self._send_input(messages.WriteFinished(command.step, command.object_ref, deleted))
            case Success() | NotFound():
                self._context.live_cache.remove(command.object_ref, command.uid)
                self._send_input(messages.WriteFinished(command.step, command.object_ref, None))
            case _:
                self._send_input(
                    messages.WriteFinished(
                        command.step, command.object_ref, failure_from_outcome(outcome)
                    )
                )

    def _read_status(self, command: messages.ReadStatus) -> Procedure[messages.StatusRead]:
        live_cache = self._context.live_cache
        calls = tuple(
            ApiCall(object_ref.cluster, Get(object_ref.ref)) for object_ref, _ in command.objects
        )
        outcomes = yield calls
        for (object_ref, uid), outcome in zip(command.objects, outcomes, strict=True):
            if isinstance(outcome, Success) and outcome.live is not None:
                live_cache.store(object_ref, outcome.live)
                self._send_input(
                    (yield from self._context.evaluate_health(object_ref, outcome.live))
                )
            elif isinstance(outcome, NotFound):
                live_cache.objects.pop(object_ref, None)
                self._send_input(messages.ObjectDeleted(object_ref, uid))
        return messages.StatusRead(command.step)

    def _verify(self, command: messages.Verify) -> None:
        """Compare a live object with what was written. A deleted object is reported separately.

        Nothing is sent if a newer plan has removed the object from its step.
        """
        context, object_ref = self._context, command.object_ref
        live = context.live_cache.objects.get(object_ref)
        items = step_items(context.steps[command.step])
        item = next((candidate for candidate in items if candidate.ref == object_ref.ref), None)
        if live is None or item is None:
            return
        unit = context.owners[object_ref]
        entry = context.leases[unit.id].record.entries.get(object_ref.ref)
        fingerprint = entry.fields_digest if entry is not None and entry.uid == live.uid else ""
        overwritten = context.evaluator.describe_overwritten_fields(
            unit, item, object_body(live), fingerprint
        )
        failure = messages.Failure("Changed", overwritten) if overwritten else None
        self._send_input(
            messages.VerifyFinished(
                command.step,
                object_ref,
                live.uid,
                live.generation,
                live.resource_version,
                failure,
            )
        )

    def _on_probed(self, command: messages.Probe, failure: messages.Failure | None) -> None:
        self._send_input(messages.ProbeFinished(command.step, command.object_ref, failure))

    def _save_journal(self, command: messages.SaveJournal) -> None:
        context = self._context
        remove_deleted_items(context, context.steps[command.step])
        record = context.leases[context.steps[command.step].unit].record
        for object_ref, digest, uid in command.opened_gates:
            entry_before = record.entries.get(object_ref.ref) or JournalEntry()
            entry = msgspec.structs.replace(
                entry_before, digest=digest, uid=uid, gate_digest=digest
            )
            if object_ref in command.hooks:
                entry = msgspec.structs.replace(entry, hook=True, ran=(*entry_before.ran, digest))
            record.set_entry(object_ref.ref, entry)
        if command.hooks:
            self._procedures.run(self._save_hook_verdicts(command), self._send_input)
        elif any(item.expires for item in step_items(context.steps[command.step])):
            # These objects expire soon, and then only the journal has their result.
            lease = context.leases[context.steps[command.step].unit]
            self._procedures.run(lease.flush(context.world.now), lambda _: None)

    def _save_hook_verdicts(
        self, command: messages.SaveJournal
    ) -> Procedure[messages.JournalSaved]:
        """Write hook verdicts to the journal, then remove the hook finalizers."""
        context = self._context
        unit = context.steps[command.step].unit
        lease = context.leases[unit]
        yield from context.acquire_lease(unit)
        yield from lease.flush_all(context.world.now)
        identity = context.comparer.units[unit].policy.identity
        release = remove_finalizers(command.hooks, context.live_cache, context.world.now)
        yield from impersonate(identity, release)
        return messages.JournalSaved(command.step)
