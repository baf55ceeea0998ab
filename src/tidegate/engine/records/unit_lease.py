"""The lease of one unit: acquired through its record, valid while our heartbeat is renewed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from tidegate.engine.cluster.hooks import remove_finalizers_uncached
from tidegate.engine.cluster.procedures import Pause, Procedure
from tidegate.engine.records.heartbeat import LeaseRequest
from tidegate.engine.records.peers import ClusterLeases, Peer
from tidegate.engine.records.record import PERMANENT_ERRORS, Clock, UnitRecord
from tidegate.errors import ClusterError, Location
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.model.units.unit import UnitId
from tidegate.world.errors import error_from_outcome, raise_for_error
from tidegate.world.messages import Forbidden, Outcome, is_error

FLUSH_INTERVAL = Ms(1 * SECOND)
"""Minimum interval between two journal writes while a rollout runs."""
POLL_INTERVAL = Ms(50)
"""How long one writer of a record waits for another before it checks again."""
RELEASE_TIMEOUT = Ms(1 * MINUTE)
"""How long cluster errors may delay the release of a unit."""
EmitUnitEvent = Callable[[EventType, UnitId, str], None]
"""Callback that emits an event about a unit, with a message."""


def takeover_message(unit: UnitId) -> str:
    return f"another rollout of `{unit}` takes over"


class SupersededError(ClusterError):
    """Another process rolled out another plan of a unit while this process was cut off."""

    exit_code = 6


class UnitLease(msgspec.Struct):
    """The lease of one unit and the record that it is stored in."""

    unit: UnitId
    record: UnitRecord
    cluster_leases: ClusterLeases
    plan_digest: str
    emit_unit_event: EmitUnitEvent
    desired_digest: str = ""
    """Digest of the desired state of the unit."""
    source: str = ""
    """Source of the desired state."""
    refs: dict[Ref, None] = msgspec.field(default_factory=dict)
    """Objects that may be written, in the order in which they became known."""
    hooks: set[Ref] = msgspec.field(default_factory=set)
    """Hooks of the current plan."""
    started_at: Ms | None = None
    compared_epoch: int = 0
    """Epoch of the record for which the cached objects are valid."""
    is_busy: bool = False
    """Whether the record is being acquired or written."""
    handled_request: LeaseRequest | None = None
    """The request of a process with another plan that was handled last."""
    may_be_holder: bool = False
    """Whether the stored record may name us as the holder."""
    is_needed: bool = False
    """Whether a step could start; then a holder with the same plan is asked for the unit, too."""
    is_releasing: bool = False
    """Whether the lease is being released."""
    _incarnation: int = -1
    """Incarnation of our heartbeat in which the lease was acquired."""
    _written_plan: str = ""
    """Plan that the record has named since our last write."""
    _has_slot: bool = False
    """Whether the unit has its slot, which must be in the journal before the first write."""
    _registered: tuple[int, str, bool] = (0, "", False)
    """Journal contents: number of objects, desired digest, and whether the unit has a slot."""
    _was_registered: bool = False
    """Whether the objects were registered in the journal during this rollout."""
    _wait_message: str = ""
    """The wait message that was emitted last."""

    def set_desired(self, digest: str) -> None:
        """Switch to another desired state."""
        if digest != self.desired_digest:
            self.desired_digest, self.hooks, self.started_at, self._has_slot = (
                digest,
                set(),
                None,
                False,
            )

    def record_slot(self) -> None:
        """Record that the unit has a slot of its group, for processes that resume the rollout."""
        self._has_slot = True

    def start(self, now: Ms) -> Ms:
        """Return when the rollout of this desired state started: now, unless it is resumed.

        Generated names depend on this time, so the journal stores the same value.
        """
        self.started_at = self.record.start_time(self.desired_digest, now)
        return self.started_at

    @property
    def is_ours(self) -> bool:
        """Whether no other process can have the lease, though we may not write right now."""
        return (
            self._incarnation == self.cluster_leases.heartbeat.incarnation and self.record.is_ours
        )

    @property
    def is_outdated(self) -> bool:
        """Whether it was acquired with a heartbeat that was lost; another process may have it.

        A new heartbeat of this process does not change that.
        """
        return 0 <= self._incarnation != self.cluster_leases.heartbeat.incarnation

    def is_acquired(self, now: Ms) -> bool:
        """Return whether the objects of the unit may be written."""
        is_valid = (
            self.is_ours and not self.is_releasing and self.cluster_leases.heartbeat.is_valid(now)
        )
        return is_valid and self._registered == self._to_register

    @property
    def _to_register(self) -> tuple[int, str, bool]:
        return len(self.refs), self.desired_digest, self._has_slot

    def acquire(self, now: Clock) -> Procedure[None]:
        """Acquire the lease and register the objects of the unit before they are written.

        Wait for another process that holds the lease, unless the lease is released in the
        meantime.
        """
        while self.is_busy or self.is_releasing:
            yield Pause(Ms(now() + POLL_INTERVAL))
        self.is_busy = True
        try:
            yield from self._acquire(now)
            self.is_needed = self.is_needed and not self.is_acquired(now())
        finally:
            self.is_busy = False

    def _acquire(self, now: Clock) -> Procedure[None]:
        while not self.is_releasing and not self.is_acquired(now()):
            yield from self.ensure_heartbeat(now)
            if self.is_ours:
                yield from self._release_unfinished_hooks(now)
                yield from self._wait_out((yield from self._register(now)), "writing", now)
                continue
            if self._incarnation >= 0:
                yield from self._wait_out((yield from self.record.read(now)), "reading", now)
            yield from self._wait_for_holder(now)
            if not self.is_releasing:
                yield from self._claim(now)

    def ensure_heartbeat(self, now: Clock) -> Procedure[None]:
        """Start our heartbeat before a lease is acquired."""
        error = yield from self.cluster_leases.heartbeat.start(now)
        raise_for_error(error, "acquiring the lease", self._location)

    def _claim(self, now: Clock) -> Procedure[None]:
        """Write our claim over the known version of the record."""
        heartbeat, record = self.cluster_leases.heartbeat, self.record
        incarnation, known_epoch, self._registered = (
            heartbeat.incarnation,
            record.epoch,
            (0, "", False),
        )
        record.claim(heartbeat.holder)
        self.may_be_holder = True
        if record.is_large(self.refs) or record.unfinished_hooks(self.desired_digest):
            error = yield from record.write_claim(now)
        else:
            error = yield from self._register(now)
        if record.is_ours:
            self._incarnation, self._written_plan = incarnation, record.plan
            self._emit_wait("")
        elif record.epoch == known_epoch:
            yield from self._wait_out(error, "writing", now)

    def _register(self, now: Clock) -> Procedure[Outcome | None]:
        registered = self._to_register
        started_at = now() if self.started_at is None else self.started_at
        if self._has_slot:
            self.record.record_slot(self.desired_digest)
        self.record.register_objects(
            self.plan_digest,
            self.refs,
            digest=self.desired_digest,
            source=self.source,
            now=started_at,
            is_resumed=self._was_registered or self.compared_epoch != self.record.epoch,
        )
        error = yield from self.record.write(now)
        if error is None:
            self._was_registered = True
            self._registered, self._written_plan = registered, self.record.plan
        return error

    def _wait_for_holder(self, now: Clock) -> Procedure[None]:
        """Wait until no other process holds the unit.

        The previous holder may have written until then.
        """
        record, cluster_leases = self.record, self.cluster_leases
        while (holder := record.holder) not in ("", cluster_leases.heartbeat.holder):
            self._raise_if_superseded()
            if self.is_releasing or cluster_leases.peers.is_dead(holder, record.seen_at):
                break
            cluster_leases.waiting[record.unit] = record
            try:
                peer = yield from cluster_leases.poll(record, now)
                if peer is not None and peer.dead_at is None and not self.is_releasing:
                    yield from self._request_release(peer)
            finally:
                cluster_leases.waiting.pop(record.unit, None)
        self._raise_if_superseded()
        record.epoch += holder != "" and not record.is_ours

    def _request_release(self, peer: Peer) -> Procedure[None]:
        """Request the unit from its holder if useful, and report that we wait.

        A holder with another plan is requested to release the unit. A holder with the same plan
        is requested only if a step could start: it releases units in which it is only waiting.
        """
        record, name = self.record, self.record.ref.name
        is_competing, request_sent = record.plan != self.plan_digest, peer.requests.get(name)
        was_requested = request_sent is not None and (
            not is_competing or request_sent.plan != record.salted_digest(record.plan)
        )
        if (is_competing or self.is_needed) and not was_requested:
            if is_competing:
                self.cluster_leases.competitors.record_request(record.holder)
            request = LeaseRequest(
                record.transitions,
                record.salted_digest(self.plan_digest),
                self.cluster_leases.heartbeat.holder,
            )
            (outcome,) = yield (
                self.cluster_leases.peers.request_call(record.holder, name, request),
            )
            if isinstance(outcome, Forbidden):
                raise error_from_outcome(outcome, "requesting the unit", location=self._location)
            was_requested = not is_error(outcome)
        since = datetime.fromtimestamp(peer.first_seen_at // SECOND, UTC)
        suffix = "; its release was requested" if is_competing and was_requested else ""
        self._emit_wait(f"held by `{record.holder}` since at least {since:%H:%M:%S} UTC{suffix}")

    def _emit_wait(self, message: str) -> None:
        """Emit once what we wait for; an empty message emits that the wait is over."""
        if message != self._wait_message:
            self._wait_message = message
            event_type = EventType.UNIT_WAITING if message else EventType.UNIT_ACQUIRED
            self.emit_unit_event(event_type, self.unit, message)

    def _release_unfinished_hooks(self, now: Clock) -> Procedure[None]:
        """Remove the finalizers of hooks of an unfinished rollout."""
        refs = (
            ref
            for ref in self.record.unfinished_hooks(self.desired_digest)
            if ref not in self.hooks
        )
        yield from remove_finalizers_uncached(
            [ClusterRef(self.record.cluster, ref) for ref in refs], now
        )

    def _wait_out(self, error: Outcome | None, action: str, now: Clock) -> Procedure[None]:
        """Wait before retrying after a transient error; raise a permanent one."""
        if isinstance(error, PERMANENT_ERRORS):
            raise error_from_outcome(error, f"{action} the journal", location=self._location)
        if error is not None:
            yield Pause(Ms(now() + FLUSH_INTERVAL))

    def flush(self, now: Clock) -> Procedure[Outcome | None]:
        """Write the journal if the lease is ours; what fails is retried with the next flush."""
        while self.is_busy:
            yield Pause(Ms(now() + POLL_INTERVAL))
        if not self.record.is_ours:
            return None
        self.is_busy = True
        error = yield from self.record.write(now)
        self.is_busy = False
        return error

    def flush_all(self, now: Clock) -> Procedure[None]:
        """Write the journal until everything is written, as long as the lease is ours."""
        while self.record.is_ours:
            error = yield from self.flush(now)
            if error is None:
                return
            yield from self._wait_out(error, "writing", now)

    def release(self, now: Clock, *, keeps_progress: bool = False) -> Procedure[None]:
        """Write pending changes and release the lease, with one write.

        This is safe after our lease expired: if another process acquired the unit, nothing is
        written. With `keeps_progress`, the unit will be acquired again and its progress is
        remembered.
        """
        self.is_releasing, self.is_needed = True, False
        while self.is_busy:
            yield Pause(Ms(now() + POLL_INTERVAL))
        deadline = now() + RELEASE_TIMEOUT
        if self.may_be_holder and not self.record.is_ours:
            yield from self.record.read(now)
        while self.may_be_holder and self.record.is_ours and now() < deadline:
            self.record.release()
            error = yield from self.flush(now)
            if error is None:
                break
            yield from self._wait_out(error, "writing", now)
        self.may_be_holder, self.is_releasing, self._incarnation = False, False, -1
        self._was_registered = self._was_registered and keeps_progress

    def reset_procedures(self) -> None:
        """Reset the state of procedures that were cancelled."""
        self.is_busy = self.is_releasing = False

    @property
    def _location(self) -> Location:
        return Location(f"unit {self.record.unit}")

    def _raise_if_superseded(self) -> None:
        """Raise SupersededError if a newer plan was rolled out while we did not hold the lease.

        The same applies if we gave way to the holder in another unit.
        """
        record = self.record
        if (
            self.cluster_leases.competitors.has_yielded_to(record.holder)
            and record.plan != self.plan_digest
        ):
            raise SupersededError(
                "cluster.superseded", takeover_message(self.unit), location=self._location
            )
        saw_all_plans = self._incarnation < 0 and not record.missed_other_plan
        if saw_all_plans or record.plan in ("", self.plan_digest, self._written_plan):
            return
        problem = f"another rollout took over `{record.unit}` while this one was disconnected"
        hint = "check the result of that rollout, then run this command again"
        raise SupersededError("cluster.superseded", problem, location=self._location, hint=hint)
