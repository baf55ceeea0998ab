"""Release histories of units, such as the records of Helm releases.

The contents of records are built by a `HistoryBackend`. A history is read before the rollout.
The holder of the unit's lease records the start before the first object is written and the
outcome after the last gate. A process that was killed in between is recognized by the
unfinished record.

    started ── objects ── finished ── tests ── tested

If a unit is tested, its revision is finished before the first test starts, and the test results
are recorded after the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Procedure, gather, impersonate
from tidegate.engine.cluster.writes import failure_from_outcome
from tidegate.engine.evaluator import FailingUnit, HistoryBackend
from tidegate.engine.messages import Failure
from tidegate.model.k8s.kinds import NAMESPACE
from tidegate.model.k8s.objects import ClusterRef, LiveObject, Ref
from tidegate.model.plans.plan import ItemAction, PlanFragment, PlannedUnit, Step, step_items
from tidegate.model.times import Ms
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.release_history import (
    PendingRevision,
    ReleaseAction,
    ReleaseStorage,
    RevisionOutcome,
)
from tidegate.model.units.unit import UnitId
from tidegate.world import messages
from tidegate.world.requests import List, Selection, Verb, Write

PAGE_SIZE = 100
WRITE_TRIES = 5
"""Number of tries to write a record while others write at the same time."""
PASSED = RevisionOutcome(passed=True)


class _OpenHistory(msgspec.Struct):
    """Records of a unit and the revision that is about to be written."""

    unit: PlannedUnit
    storage: ReleaseStorage
    backend: HistoryBackend
    records: tuple[LiveObject, ...] = ()
    pending: PendingRevision = msgspec.field(
        default_factory=lambda: PendingRevision(ReleaseAction.UNCHANGED)
    )
    is_started: bool = False
    is_finished: bool = False
    is_testing: bool = False
    """Whether the revision is finished and its tests are running."""
    is_remediation: bool = False
    """Whether the pending revision remediates a failure."""
    is_retry: bool = False
    """Whether the unit has failed before and is retried."""

    @property
    def is_unfinished(self) -> bool:
        """Whether the pending revision was started, by any process, and not finished."""
        return self.is_started or self.pending.is_resumed


class ReleaseHistories:
    """The release histories of a rollout, by unit."""

    def __init__(self, backend: HistoryBackend | None) -> None:
        self._backend = backend
        self._histories: dict[UnitId, _OpenHistory] = {}
        self._record_refs: set[ClusterRef] = set()

    def read(self, units: Sequence[PlannedUnit]) -> Procedure[messages.ErrorOutcome | None]:
        """Read the records of units, except of those whose revision this process has started."""
        backend = self._backend
        if backend is None:
            return None
        for unit in units:
            storage = backend.storage(unit.id)
            if unit.id not in self._histories and storage is not None:
                self._histories[unit.id] = _OpenHistory(unit, storage, backend)
        histories = (self._histories[unit.id] for unit in units if unit.id in self._histories)
        unstarted = [history for history in histories if not history.is_started]
        reloads = (impersonate(_identity(history), self._reload(history)) for history in unstarted)
        outcomes = yield from gather(reloads)
        return next((outcome for outcome in outcomes if outcome is not None), None)

    def pending_revision(self, unit: UnitId) -> PendingRevision | None:
        """Return the revision to be written; None for a unit without release history."""
        history = self._histories.get(unit)
        return None if history is None else history.pending

    def record_bodies(self, unit: UnitId) -> tuple[bytes, ...]:
        """Return the records of a unit as they are stored."""
        history = self._histories.get(unit)
        return () if history is None else tuple(record.body for record in history.records)

    def is_record(self, object_ref: ClusterRef) -> bool:
        """Return whether an object is a release record."""
        return object_ref in self._record_refs

    def plan_remediation(self, failing: FailingUnit) -> PlanFragment | None:
        """Return the on-failure steps of a pending revision.

        None if there are none, or no revision.
        """
        history = self._histories.get(failing.unit.id)
        if history is None or not history.pending.is_due or history.is_remediation:
            return None
        return history.backend.plan_remediation(failing, history.records, history.pending)

    def starts_revision(self, step: Step) -> bool:
        """Return whether a record is written before a step, even if it writes no object."""
        history = self._histories.get(step.unit)
        if history is None:
            return False
        if step.only_on_failure:
            return history.is_unfinished and not history.is_remediation
        if step.is_test:
            return not history.is_testing
        is_new = (
            history.pending.is_due and not history.pending.is_resumed and _applies_objects(step)
        )
        return (history.is_retry or is_new) and not history.is_started

    def start(
        self, step: Step, outcome: RevisionOutcome | None, now: Ms
    ) -> Procedure[Failure | None]:
        """Record the start of a revision, unless it is recorded already.

        Return the failure, if any.

        `outcome` is that of the unit, for steps that run after it: tests and on-failure steps.
        """
        history = self._histories.get(step.unit)
        if history is None:
            return None
        if outcome is None:
            procedure = self._start_revision(history, now)
        elif step.is_test:
            procedure = self._start_tests(history, outcome, now)
        else:
            procedure = self._start_remediation(history, outcome, now)
        return (yield from impersonate(_identity(history), procedure))

    def _start_tests(
        self, history: _OpenHistory, outcome: RevisionOutcome, now: Ms
    ) -> Procedure[Failure | None]:
        """Finish the revision before its tests start."""
        if history.is_testing or not history.pending.is_due:
            return None
        if history.pending.action is not ReleaseAction.TEST:
            failure = yield from self._write_finish(history, outcome, now)
            if failure is not None:
                return failure
        history.is_started = history.is_finished = history.is_testing = True
        return None

    def _start_remediation(
        self, history: _OpenHistory, outcome: RevisionOutcome, now: Ms
    ) -> Procedure[Failure | None]:
        """Record the failure, and the start of the remediation."""
        if not history.is_unfinished or history.is_remediation:
            return None
        write_failure = yield from self._record_outcome(history, outcome, now)
        if write_failure is not None:
            return write_failure
        history.pending = history.backend.plan_remediation_revision(
            history.unit.id, history.records
        )
        history.is_started, history.is_finished, history.is_testing, history.is_remediation = (
            False,
            False,
            False,
            True,
        )
        return (yield from self._write_start(history, now)) if history.pending.is_due else None

    def _start_revision(self, history: _OpenHistory, now: Ms) -> Procedure[Failure | None]:
        for name in history.backend.preceding_units(history.unit.id):
            # All its steps have passed; its lease is released later.
            failure = yield from self.finish(name, PASSED, PASSED, now)
            if failure is not None:
                return failure
        if history.is_retry and not history.is_started:
            error = yield from self._reload(history)
            if error is not None:
                return failure_from_outcome(error)
            if history.pending.problem:
                return Failure("ReleaseHistory", history.pending.problem, final=True)
        if history.is_started or not history.pending.is_due:
            return None
        return (yield from self._write_start(history, now))

    def record_attempt(
        self,
        unit: UnitId,
        failed_outcome: RevisionOutcome | None,
        remediated_outcome: RevisionOutcome,
        now: Ms,
    ) -> Procedure[Failure | None]:
        """Record the failed attempt, or its remediation, before the unit is retried."""
        history = self._histories.get(unit)
        if history is None or not history.is_unfinished:
            return None
        outcome = remediated_outcome if history.is_remediation else failed_outcome
        write_failure = None
        if outcome is not None:
            write_failure = yield from impersonate(
                _identity(history), self._record_outcome(history, outcome, now)
            )
        history.pending = PendingRevision(ReleaseAction.UNCHANGED)  # until the next read
        history.is_started, history.is_finished, history.is_testing, history.is_remediation = (
            False,
            False,
            False,
            False,
        )
        history.is_retry = True
        return write_failure

    def finish(
        self, unit: UnitId, outcome: RevisionOutcome, remediated_outcome: RevisionOutcome, now: Ms
    ) -> Procedure[Failure | None]:
        """Record the outcome of a revision; also its start, if no object had to be written."""
        history = self._histories.get(unit)
        if (
            history is None
            or not history.pending.is_due
            or (history.is_finished and not history.is_testing)
        ):
            return None
        outcome = remediated_outcome if history.is_remediation else outcome
        if not (history.is_started or history.pending.is_resumed or outcome.passed):
            return None  # no revision was started
        return (
            yield from impersonate(_identity(history), self._record_outcome(history, outcome, now))
        )

    def _record_outcome(
        self, history: _OpenHistory, outcome: RevisionOutcome, now: Ms
    ) -> Procedure[Failure | None]:
        """Record the outcome, or the test results if the revision is already finished."""
        if not history.is_testing and history.pending.action is not ReleaseAction.TEST:
            return (yield from self._write_finish(history, outcome, now))
        build_writes = partial(
            history.backend.build_test_writes, history.unit.id, outcome=outcome, now=now
        )
        failure = yield from self._write_with_retries(
            history, lambda: build_writes(history.records, history.pending)
        )
        history.is_testing = history.is_testing and failure is not None
        return failure

    def _write_start(self, history: _OpenHistory, now: Ms) -> Procedure[Failure | None]:
        backend, name, expected = history.backend, history.unit.id, history.pending
        failure: Failure | None = None
        for _ in range(WRITE_TRIES):
            writes = backend.build_start_writes(name, history.records, history.pending, now)
            failure = yield from self._write_all(history, writes)
            if failure is None:
                history.is_started = True
                return None
            error = yield from self._reload(history)
            if error is not None:
                return failure_from_outcome(error)
            if (history.pending.action, history.pending.number) != (
                expected.action,
                expected.number,
            ):
                message = "the release was changed by another client"
                return Failure("ReleaseChanged", message, final=True)
        return failure

    def _write_finish(
        self, history: _OpenHistory, outcome: RevisionOutcome, now: Ms
    ) -> Procedure[Failure | None]:
        if not history.is_started:
            failure = yield from self._write_start(history, now)
            if failure is not None:
                return failure
        build_writes, name = history.backend.build_finish_writes, history.unit.id
        failure = yield from self._write_with_retries(
            history, lambda: build_writes(name, history.records, history.pending, outcome, now)
        )
        history.is_finished = failure is None
        return failure

    def _write_with_retries(
        self, history: _OpenHistory, build_writes: Callable[[], Iterable[Write]]
    ) -> Procedure[Failure | None]:
        """Write records built from the existing ones; read those again if another process wrote."""
        failure: Failure | None = None
        for _ in range(WRITE_TRIES):
            failure = yield from self._write_all(history, build_writes())
            if failure is None:
                return None
            error = yield from self._read_records(history)
            if error is not None:
                return failure_from_outcome(error)
        return failure

    def _write_all(
        self, history: _OpenHistory, writes: Iterable[Write]
    ) -> Procedure[Failure | None]:
        """Write records in order; stop at the first failure and return it."""
        for write in writes:
            failure = yield from self._write_record(history, write)
            if failure is not None:
                return failure
        return None

    def _write_record(self, history: _OpenHistory, write: Write) -> Procedure[Failure | None]:
        """Write one record; create the namespace of the first one if it does not exist."""
        cluster = history.unit.cluster
        self._record_refs.add(ClusterRef(cluster, write.ref))
        (outcome,) = yield (ApiCall(cluster, write),)
        if isinstance(outcome, messages.NotFound) and write.verb is Verb.CREATE:
            yield (ApiCall(cluster, _create_namespace(write.ref.namespace)),)
            (outcome,) = yield (ApiCall(cluster, write),)
        if isinstance(outcome, messages.NotFound) and write.verb is Verb.DELETE:
            outcome = messages.Success(None)
        if isinstance(outcome, messages.Success):
            self._update_record(history, write.ref, outcome.live)
            return None
        return failure_from_outcome(outcome, write.ref)

    def _update_record(self, history: _OpenHistory, ref: Ref, live: LiveObject | None) -> None:
        others = (record for record in history.records if record.ref != ref)
        history.records = tuple(others) if live is None else (*others, live)

    def _reload(self, history: _OpenHistory) -> Procedure[messages.ErrorOutcome | None]:
        """Read the records and plan the pending revision from them."""
        error = yield from self._read_records(history)
        if error is None:
            history.pending = history.backend.plan_revision(history.unit.id, history.records)
        return error

    def _read_records(self, history: _OpenHistory) -> Procedure[messages.ErrorOutcome | None]:
        storage = history.storage
        selection = Selection(storage.kind, storage.namespace, label_selector=storage.labels)
        records: list[LiveObject] = []
        resume = ""
        while True:
            (page,) = yield (ApiCall(history.unit.cluster, List(selection, PAGE_SIZE, resume)),)
            if not isinstance(page, messages.ListPage):
                return page if messages.is_error(page) else None
            records += page.items
            resume = page.continue_token
            if not resume:
                break
        history.records = tuple(records)
        self._record_refs |= {ClusterRef(history.unit.cluster, record.ref) for record in records}
        return None


def _identity(history: _OpenHistory) -> ImpersonatedUser | None:
    return history.unit.policy.identity


def _applies_objects(step: Step) -> bool:
    """Return whether a step applies objects of its unit, and does not only wait for others."""
    return any(item.action is ItemAction.APPLY for item in step_items(step))


def _create_namespace(name: str) -> Write:
    body = {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": {"name": name}}
    return Write(verb=Verb.CREATE, ref=Ref(NAMESPACE, "", name), body=msgspec.json.encode(body))
