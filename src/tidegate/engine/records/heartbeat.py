"""Heartbeats: one Lease for each process and cluster, renewed by its process.

Clocks are never compared. A process knows by its own clock when it last renewed the Lease, and
stops writing before others may consider it dead. Other processes measure with their own clocks
how long the Lease has not changed. After its whole duration they delete it, and the units of
its process are free. So a process that still finds its own Lease knows that it has lost
nothing.

    kubectl get lease -n tidegate-system
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure
from tidegate.engine.records.record import PERMANENT_ERRORS, Clock
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE, resource_name
from tidegate.model.k8s.kinds import LEASE, NAMESPACE
from tidegate.model.k8s.objects import Json, LiveObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import (
    AlreadyExists,
    ErrorOutcome,
    NotFound,
    Outcome,
    Success,
    is_error,
)
from tidegate.world.requests import Get, Verb, Write

LEASE_DURATION = Ms(15 * SECOND)
RENEW_INTERVAL = Ms(5 * SECOND)
WRITE_MARGIN = Ms(5 * SECOND)
"""How long before the end of its lease a process stops writing."""
RETRY_PERIOD = Ms(1 * SECOND)
WRITE_TRIES = 3
"""Number of immediate tries to write a Lease that others write at the same time."""
REQUEST_PREFIX = "give-way.tidegate.dev/"
"""Prefix of annotations that request a unit, followed by the name of its record."""


class LeaseRequest(msgspec.Struct, frozen=True):
    """A request for a unit that another process holds."""

    transitions: int
    """Acquisition count of the unit's record at the time of the request."""
    plan: str = ""
    """Salted digest of the plan of the requesting process."""
    holder: str = ""
    """Identity of the requesting process."""


class _LeaseMeta(msgspec.Struct):
    annotations: dict[str, str] = {}


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = ""
    renew_time: str | None = ""
    lease_duration_seconds: int | None = 0
    lease_transitions: int | None = 0


class Lease(msgspec.Struct):
    metadata: _LeaseMeta = msgspec.field(default_factory=_LeaseMeta)
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


class Heartbeat(msgspec.Struct):
    """The Lease of this process in one cluster."""

    cluster: str
    holder: str
    namespace: str = TIDEGATE_NAMESPACE
    incarnation: int = 0
    """Incremented when the Lease is found deleted: leases acquired before are lost."""
    requests: dict[str, LeaseRequest] = msgspec.field(default_factory=dict)
    """Requests of other processes, by the name of the unit's record."""
    may_exist: bool = False
    """Whether the Lease may exist."""
    is_renewing: bool = False
    _is_starting: bool = False
    _uid: str = ""
    _version: str = ""
    _transitions: int = 0
    _renewed_at: Ms = Ms(0)
    _tried_at: Ms = Ms(0)
    _expired: bool = False

    @property
    def ref(self) -> Ref:
        return lease_ref(self.holder, self.namespace)

    @property
    def is_started(self) -> bool:
        """Whether the Lease is written and not lost."""
        return bool(self._version)

    @property
    def renew_deadline(self) -> Ms:
        """Time at which writing must stop unless a later renewal succeeds."""
        return Ms(self._renewed_at + LEASE_DURATION - WRITE_MARGIN)

    @property
    def write_deadline(self) -> Ms | None:
        """Time until which a write may be sent; None before any lease can have been acquired."""
        return self.renew_deadline if self.is_started else Ms(0) if self.may_exist else None

    def is_valid(self, now: Ms) -> bool:
        """Return whether it is still safe to write."""
        return self.is_started and now < self.renew_deadline

    def is_renewal_due(self, now: Ms) -> bool:
        """Return whether the Lease must be renewed now."""
        return self.is_started and not self.is_renewing and now >= self._next_renewal

    @property
    def _next_renewal(self) -> Ms:
        return max(Ms(self._renewed_at + RENEW_INTERVAL), Ms(self._tried_at + RETRY_PERIOD))

    def has_just_expired(self, now: Ms) -> bool:
        """Return whether writing must stop from now on; True only once per expiry."""
        was_expired, self._expired = self._expired, self.is_started and now >= self.renew_deadline
        return self._expired and not was_expired

    @property
    def wake_at(self) -> Ms | None:
        """Time of the next renewal or expiry; None if the Lease is not written."""
        times = [] if self._expired else [self.renew_deadline]
        times += [] if self.is_renewing else [self._next_renewal]
        return min(times, default=None) if self.is_started else None

    def start(self, now: Clock) -> Procedure[ErrorOutcome | None]:
        """Write the Lease, however long that takes; return an error that waiting cannot resolve."""
        while not self.is_valid(now()):
            if self.is_started or self._is_starting:
                yield Pause(Ms(now() + RETRY_PERIOD // 5))
                continue
            self._is_starting = True
            error = yield from self._create(now)
            self._is_starting = False
            if isinstance(error, PERMANENT_ERRORS):
                return error
            if error is not None:
                yield Pause(Ms(now() + RETRY_PERIOD))
        return None

    def _create(self, now: Clock) -> Procedure[ErrorOutcome | None]:
        self._transitions, self.may_exist, at = 0, True, now()
        (outcome,) = yield (self._write_call(Verb.CREATE, at),)
        if isinstance(outcome, NotFound):
            return (yield from self._create_namespace())
        if is_error(outcome) and not isinstance(outcome, PERMANENT_ERRORS):
            # It may exist: the response was lost, or an earlier process had our name.
            (existing,) = yield (ApiCall(self.cluster, Get(self.ref)),)
            if isinstance(existing, Success) and existing.live is not None:
                self._transitions = (read_lease(existing.live).spec.lease_transitions or 0) + 1
                at = now()
                (outcome,) = yield (
                    self._write_call(Verb.REPLACE, at, version=existing.live.resource_version),
                )
        self._record_renewal(outcome, at)
        return outcome if is_error(outcome) else None

    def _create_namespace(self) -> Procedure[ErrorOutcome | None]:
        metadata: Json = {"name": self.namespace}
        body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        ref = Ref(NAMESPACE, "", self.namespace)
        request = Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body))
        (outcome,) = yield (ApiCall(self.cluster, request),)
        return outcome if is_error(outcome) and not isinstance(outcome, AlreadyExists) else None

    def renew(self, now: Clock) -> Procedure[None]:
        """Renew the Lease.

        A conflict means that another process added a request: read it and retry.
        """
        self.is_renewing = True
        for _ in range(WRITE_TRIES):
            self._tried_at = at = now()
            (outcome,) = yield (self._write_call(Verb.REPLACE, at, version=self._version),)
            self._record_renewal(outcome, at)
            if not is_error(outcome):
                break
            (current,) = yield (ApiCall(self.cluster, Get(self.ref)),)
            if not self._is_current(current):
                break
        self.is_renewing = False

    def _record_renewal(self, outcome: Outcome, at: Ms) -> None:
        if isinstance(outcome, Success) and outcome.live is not None:
            self._renewed_at, self._uid, self._version = (
                at,
                outcome.live.uid,
                outcome.live.resource_version,
            )

    def _is_current(self, outcome: Outcome) -> bool:
        """Read the requests and return whether the Lease exists and is ours."""
        if isinstance(outcome, Success) and outcome.live is not None:
            lease = read_lease(outcome.live)
            spec, is_same = lease.spec, outcome.live.uid == self._uid
            if is_same and (spec.lease_transitions or 0) == self._transitions:
                self._version, self.requests = outcome.live.resource_version, read_requests(lease)
                return True
        elif not isinstance(outcome, NotFound):
            return False
        self.incarnation += 1
        self._version = ""
        return False

    def delete_lease(self, now: Clock) -> Procedure[None]:
        """Delete the Lease, so that no process waits for it to expire."""
        while self.is_renewing:
            yield Pause(Ms(now() + RETRY_PERIOD // 5))
        self._version = ""
        (outcome,) = yield (ApiCall(self.cluster, Get(self.ref)),)
        if (
            isinstance(outcome, Success)
            and outcome.live is not None
            and self._is_latest(outcome.live)
        ):
            write = Write(verb=Verb.DELETE, ref=self.ref, uid=outcome.live.uid)
            yield (ApiCall(self.cluster, write),)

    def reset_procedures(self) -> None:
        """Reset the state of procedures that were cancelled."""
        self.is_renewing = self._is_starting = False

    def _is_latest(self, live: LiveObject) -> bool:
        """Return whether the Lease is the one that we wrote last, even if the response was lost."""
        return (read_lease(live).spec.lease_transitions or 0) == self._transitions

    def _write_call(self, verb: Verb, at: Ms, *, version: str = "") -> ApiCall:
        request_annotations = {
            REQUEST_PREFIX + name: format_request(request)
            for name, request in self.requests.items()
        }
        metadata: dict[str, Json] = {
            "name": self.ref.name,
            "namespace": self.namespace,
            "annotations": {**request_annotations},
        }
        if version:
            metadata["resourceVersion"] = version
        spec: Json = {
            "holderIdentity": self.holder,
            "renewTime": _format_micro_time(at),
            "leaseDurationSeconds": LEASE_DURATION // SECOND,
            "leaseTransitions": self._transitions,
        }
        body: Json = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": metadata,
            "spec": spec,
        }
        encoded = msgspec.json.encode(body)
        write = Write(verb=verb, ref=self.ref, body=encoded, resource_version=version)
        return ApiCall(self.cluster, write, urgent=True)


def lease_ref(holder: str, namespace: str = TIDEGATE_NAMESPACE) -> Ref:
    return Ref(LEASE, namespace, resource_name(holder))


def read_lease(live: LiveObject) -> Lease:
    return msgspec.json.decode(live.body, type=Lease)


def read_requests(lease: Lease) -> dict[str, LeaseRequest]:
    """Return the valid requests in the annotations of a Lease; other annotations are ignored."""
    requests: dict[str, LeaseRequest] = {}
    for key, value in lease.metadata.annotations.items():
        transitions, *values = value.split(" ", 2)
        if key.startswith(REQUEST_PREFIX) and transitions.isdecimal():
            requests[key.removeprefix(REQUEST_PREFIX)] = LeaseRequest(int(transitions), *values)
    return requests


def format_request(request: LeaseRequest) -> str:
    return f"{request.transitions} {request.plan} {request.holder}"


def _format_micro_time(at: Ms) -> str:
    timestamp = datetime.fromtimestamp(at // SECOND, UTC)
    return f"{timestamp:%Y-%m-%dT%H:%M:%S}.{at % SECOND:03}000Z"
