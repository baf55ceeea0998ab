"""Other tidegate processes, and the lease state that the units of one cluster share.

A process is observed once for all units that it holds, by our own clock only.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure, gather
from tidegate.engine.records.heartbeat import (
    LEASE_DURATION,
    REQUEST_PREFIX,
    RETRY_PERIOD,
    Heartbeat,
    LeaseRequest,
    format_request,
    lease_ref,
    read_lease,
    read_requests,
)
from tidegate.engine.records.record import PERMANENT_ERRORS, Clock, UnitRecord
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE, list_heads
from tidegate.errors import Location
from tidegate.model.k8s.objects import Json, LiveObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.world.errors import error_from_outcome
from tidegate.world.messages import NotFound, Outcome, Success
from tidegate.world.requests import Get, Verb, Write

NO_LEASE = ("", "", 0)
"""The state of a process without a Lease."""


class Peer(msgspec.Struct):
    """Observed state of another process."""

    lease_state: tuple[str, str, int] | None = None
    """Values that change with each renewal; only compared for equality."""
    unchanged_since: Ms = Ms(0)
    """Time at which these values were first seen."""
    first_seen_at: Ms = Ms(0)
    """Time at which the process was first seen."""
    dead_at: Ms | None = None
    """Time at which the process was dead, so it holds nothing that was written before."""
    requests: dict[str, LeaseRequest] = msgspec.field(default_factory=dict)
    """Lease requests that were sent to the process, by record name."""


class CompetingPeers(msgspec.Struct):
    """Processes with another plan for our units: one of two yields, in all clusters.

    The requested process yields. If both have sent requests to each other, their holder names
    decide, so that both reach the same decision.
    """

    our_holder: str
    _requested: set[str] = msgspec.field(default_factory=set)
    _yielded_to: set[str] = msgspec.field(default_factory=set)

    def record_request(self, holder: str) -> None:
        """Record a request before the other process can see it, so that both agree on who asked."""
        self._requested.add(holder)

    def yield_to(self, holder: str) -> bool:
        """Return whether we yield to a requesting process, now and from now on."""
        if holder in self._requested and self.our_holder > holder:
            return False
        self._yielded_to.add(holder)
        return True

    def has_yielded_to(self, holder: str) -> bool:
        return holder in self._yielded_to


class Peers(msgspec.Struct):
    """The other processes in one cluster."""

    cluster: str
    namespace: str = TIDEGATE_NAMESPACE
    by_holder: dict[str, Peer] = msgspec.field(default_factory=dict)

    def is_dead(self, holder: str, since: Ms) -> bool:
        """Return whether a process holds nothing of what existed at a time."""
        dead_at = self.by_holder[holder].dead_at if holder in self.by_holder else None
        return dead_at is not None and dead_at >= since

    def observe(self, holder: str, now: Clock) -> Procedure[Peer]:
        """Observe whether a process is alive.

        Delete the Lease of a dead one, so that no process waits for it.

        The process was alive when it wrote what we read, which is not later than the response.
        If nothing has changed when we read again after the full lease duration, it is dead. A
        process whose Lease was deleted may write until it notices, so the same applies to it.
        """
        read_at = now()
        peer = self.by_holder.setdefault(holder, Peer(first_seen_at=read_at))
        ref = lease_ref(holder, self.namespace)
        (outcome,) = yield (ApiCall(self.cluster, Get(ref)),)
        peer.dead_at = None
        self._raise_if_permanent(outcome, ref)
        live = outcome.live if isinstance(outcome, Success) else None
        if live is None and not isinstance(outcome, NotFound):
            return peer
        lease_state, duration = NO_LEASE, LEASE_DURATION
        if live is not None:
            lease = read_lease(live)
            spec = lease.spec
            lease_state = (live.uid, spec.renew_time or "", spec.lease_transitions or 0)
            duration = Ms((spec.lease_duration_seconds or LEASE_DURATION // SECOND) * SECOND)
            peer.requests = read_requests(lease)
        if lease_state != peer.lease_state:
            peer.lease_state, peer.unchanged_since = lease_state, now()
        elif read_at >= peer.unchanged_since + duration and (
            live is None or (yield from self._delete_lease(live))
        ):
            peer.lease_state, peer.dead_at = NO_LEASE, read_at
        return peer

    def _delete_lease(self, live: LiveObject) -> Procedure[bool]:
        """Delete a Lease if it has not been renewed since; return whether it is gone."""
        write = Write(
            verb=Verb.DELETE, ref=live.ref, uid=live.uid, resource_version=live.resource_version
        )
        (outcome,) = yield (ApiCall(self.cluster, write),)
        self._raise_if_permanent(outcome, live.ref)
        return isinstance(outcome, Success | NotFound)

    @staticmethod
    def _raise_if_permanent(outcome: Outcome, ref: Ref) -> None:
        """Raise a permanent error outcome: without read access the wait would never end."""
        if isinstance(outcome, PERMANENT_ERRORS):
            raise error_from_outcome(
                outcome, "reading the holder of the unit", location=Location(str(ref))
            )

    def request_call(self, holder: str, record: str, request: LeaseRequest) -> ApiCall:
        """Return the call that requests a unit; its holder sees the request at its next renewal."""
        patch: Json = {
            "metadata": {"annotations": {REQUEST_PREFIX + record: format_request(request)}}
        }
        ref, body = lease_ref(holder, self.namespace), msgspec.json.encode(patch)
        return ApiCall(self.cluster, Write(verb=Verb.PATCH, ref=ref, body=body))


MAX_SINGLE_READS = 4
"""Up to this number, records are read one by one; more are listed."""


class ClusterLeases(msgspec.Struct):
    """Lease state that the units of one cluster share."""

    heartbeat: Heartbeat
    peers: Peers
    competitors: CompetingPeers
    waiting: dict[str, UnitRecord] = msgspec.field(default_factory=dict)
    """Records, by unit, that other processes hold and we wait for."""
    polled_at: Ms = Ms(0)

    def poll(self, record: UnitRecord, now: Clock) -> Procedure[Peer | None]:
        """Observe all records that are waited for, at most once per retry period for all units.

        Return the process that holds this record; None if there is none, or it is not known
        yet.
        """
        if now() < self.polled_at + RETRY_PERIOD:
            yield Pause(Ms(self.polled_at + RETRY_PERIOD))
        if now() >= self.polled_at + RETRY_PERIOD:
            self.polled_at = now()
            records = list(self.waiting.values())
            yield from read_records(records, now)
            holders = dict.fromkeys(
                waiting_record.holder for waiting_record in records if waiting_record.holder
            )
            yield from gather(self.peers.observe(holder, now) for holder in holders)
        return self.peers.by_holder.get(record.holder)


def read_records(records: Iterable[UnitRecord], now: Clock) -> Procedure[Outcome | None]:
    """Read many records of one cluster and namespace with few calls.

    Return the first error, if any.
    """
    by_name = {record.ref.name: record for record in records}
    heads = None
    if len(by_name) > MAX_SINGLE_READS:
        first = next(iter(by_name.values()))
        heads = yield from list_heads(first.cluster, first.ref.namespace)
    if heads is None:
        calls = tuple(ApiCall(record.cluster, Get(record.ref)) for record in by_name.values())
        outcomes: tuple[Outcome, ...] = yield calls
    else:
        live_heads = (heads.get(name) for name in by_name)
        outcomes = tuple(NotFound("") if live is None else Success(live) for live in live_heads)
    pairs = zip(by_name.values(), outcomes, strict=True)
    errors = yield from gather(record.load(outcome, now) for record, outcome in pairs)
    return next((error for error in errors if error is not None), None)
