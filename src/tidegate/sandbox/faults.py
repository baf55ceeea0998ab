"""Seeded faults of a simulated cluster.

A world calls `FaultInjector.effects_for_call` once for each call, and puts the faults of
`FaultInjector.timed_faults` into its event queue at the start. The result depends on the seed,
the faults, the calls so far and their times only: there is no clock here and nothing random.

    CallEffect   Rejection | Delay | ResponseLoss     effects on one call
                 StreamDrop | StreamSilence           effects on the stream of a watch
    TimedEffect  StreamDrop | StreamSilence           effects on all open streams
                 Outage | Recovery | Compaction       effects on a cluster
                 Edit                                 a write of another client
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from tidegate.model.k8s.labels import SelectorError, parse_field_selector
from tidegate.model.k8s.objects import Ref
from tidegate.model.times import SECOND, Ms, add_duration
from tidegate.world import requests
from tidegate.world.messages import (
    Conflict,
    Delivery,
    ErrorOutcome,
    LossReason,
    NoResponse,
    ServerError,
    TooManyRequests,
)

WRITES = tuple(verb.value for verb in requests.Verb)
VERBS = (*WRITES, "get", "list", "watch", "logs", "kinds", "http")
CONFLICT: Final = Conflict(
    "Operation cannot be fulfilled: the object has been modified;"
    " please apply your changes to the latest version and try again (seeded fault)"
)
ERROR: Final = ServerError(500, "InternalError", "Internal error occurred: seeded fault")
DISCONNECTED: Final = NoResponse(
    Delivery.MAYBE_SENT, LossReason.DISCONNECTED, "connection reset by peer (seeded fault)"
)
UNREACHABLE: Final = NoResponse(
    Delivery.NOT_SENT, LossReason.CONNECTION_REFUSED, "connection refused (seeded fault)"
)


def too_many_requests(retry_after: Ms = SECOND) -> TooManyRequests:
    """Return the outcome of a request that the server rejects because of its load."""
    return TooManyRequests("Too many requests, please try again later (seeded fault)", retry_after)


class Rejection(msgspec.Struct, frozen=True):
    """A rejection of a call: the server does not perform it and returns this outcome.

    A watch ends with the outcome.
    """

    outcome: ErrorOutcome
    """The outcome."""


class Delay(msgspec.Struct, frozen=True):
    """A delay of the response by this duration; a watch opens later."""

    duration: Ms
    """The duration of the delay."""


class ResponseLoss(msgspec.Struct, frozen=True):
    """A loss of the connection (`DISCONNECTED`), before or after the call is performed."""

    is_performed: bool
    """Whether the call is performed."""


class StreamDrop(msgspec.Struct, frozen=True):
    """A loss of a stream (`DISCONNECTED`), some time after it was opened."""

    after: Ms = Ms(0)
    """Time from the opening of the stream to the loss."""


class StreamSilence(msgspec.Struct, frozen=True):
    """A stream that stays open without messages, some time after it was opened.

    Messages and bookmarks are held back, and sent when the silence ends.
    """

    duration: Ms | None = None
    """Duration of the silence; None means forever."""
    after: Ms = Ms(0)
    """Time from the opening of the stream to the silence."""


class Outage(msgspec.Struct, frozen=True):
    """An outage of the cluster: streams break, and pending calls get no response."""

    until: Ms | None = None
    """The end of the outage; None for never."""


class Recovery(msgspec.Struct, frozen=True):
    """The end of an outage. Another outage can still be active: see `FaultInjector.is_down`."""


class Compaction(msgspec.Struct, frozen=True):
    """A compaction: all resource versions and continue tokens up to now expire.

    Open streams continue.
    """


class Edit(msgspec.Struct, frozen=True):
    """A write of another client to an object."""

    write: requests.Write
    """The write."""


CallEffect: TypeAlias = Rejection | Delay | ResponseLoss | StreamDrop | StreamSilence
TimedEffect: TypeAlias = StreamDrop | StreamSilence | Outage | Recovery | Compaction | Edit


class FaultSelector(msgspec.Struct, frozen=True, kw_only=True):
    """A selector of calls, watches or clusters. None, and an empty list of verbs, match any."""

    cluster: str | None = None
    """The name of the cluster."""
    verbs: tuple[str, ...] = ()
    """The verbs of calls."""
    group: str | None = None
    """The API group of the object."""
    kind: str | None = None
    """The kind of the object."""
    namespace: str | None = None
    """The namespace of the object."""
    name: str | None = None
    """The name of the object."""
    manager: str | None = None
    """The field manager of a write."""

    def matches(self, call: requests.Call) -> bool:
        """Return whether a call is selected."""
        request = call.request
        if self.verbs and request_verb(request) not in self.verbs:
            return False
        manager = request.manager if isinstance(request, requests.Write) else ""
        if self.manager is not None and self.manager != manager:
            return False
        return self.matches_cluster(call.cluster) and self._matches_ref(_request_ref(request))

    def matches_cluster(self, cluster: str) -> bool:
        """Return whether a cluster is selected."""
        return self.cluster is None or self.cluster == cluster

    def matches_watch(self, selection: requests.Selection, *, cluster: str) -> bool:
        """Return whether an open watch is selected."""
        return self.matches_cluster(cluster) and self._matches_ref(_selection_ref(selection))

    def _matches_ref(self, ref: Ref | None) -> bool:
        if ref is None:
            expected = (self.group, self.kind, self.namespace, self.name)
            return all(field is None for field in expected)
        pairs = (
            (self.group, ref.kind.group),
            (self.kind, ref.kind.name),
            (self.namespace, ref.namespace),
            (self.name, ref.name),
        )
        return all(expected is None or expected == actual for expected, actual in pairs)


MATCH_ALL: Final = FaultSelector()


class Frequency(msgspec.Struct, frozen=True, kw_only=True):
    """The frequency of a fault: every nth matching call of a time window, or a random share."""

    every: int = 1
    """Every how many matching calls the fault occurs."""
    probability: float | None = None
    """The share of matching calls; None if `every` decides."""
    times: int | None = None
    """Maximum number of hits."""
    start: Ms = Ms(0)
    """Start of the time window, counted from the start of the sandbox."""
    until: Ms | None = None
    """End of the time window, counted from the start of the sandbox; None for no end."""

    def includes(self, elapsed: Ms) -> bool:
        """Return whether a time since the start of the sandbox is in the time window."""
        return self.start <= elapsed and (self.until is None or elapsed < self.until)


ALWAYS: Final = Frequency()


class CallFault(msgspec.Struct, frozen=True):
    """A fault that affects matching calls."""

    effect: CallEffect
    """The effect."""
    when: FaultSelector = MATCH_ALL
    """The affected calls."""
    frequency: Frequency = ALWAYS
    """How often the fault occurs."""


class TimedFault(msgspec.Struct, frozen=True):
    """A fault that occurs at a time."""

    at: Ms
    """The time."""
    effect: TimedEffect
    """The effect."""
    when: FaultSelector = MATCH_ALL
    """The affected clusters or streams."""


Fault: TypeAlias = CallFault | TimedFault


class FaultInjector:
    """The faults of a sandbox, with a count of the calls that each has matched."""

    def __init__(self, faults: Sequence[Fault] = (), *, seed: int = 0, start: Ms = Ms(0)) -> None:
        self._seed = seed
        self._start = start
        self._timed_faults = tuple(
            msgspec.structs.replace(timed_fault, at=add_duration(start, timed_fault.at))
            for timed_fault in _expand_timed_faults(faults)
        )
        self._outages = tuple(
            (Frequency(start=fault.at, until=fault.effect.until), fault.when)
            for fault in faults
            if isinstance(fault, TimedFault) and isinstance(fault.effect, Outage)
        )
        self._counters = [
            _FaultCounter(fault, number)
            for number, fault in enumerate(faults)
            if isinstance(fault, CallFault)
        ]

    def effects_for_call(self, call: requests.Call, now: Ms) -> tuple[CallEffect, ...]:
        """Return the effects on a call, in the order of the faults.

        Must be called exactly once for each call, because calls are counted.
        Of several `Rejection` and `ResponseLoss` the first counts; durations of `Delay` add up.
        """
        if isinstance(call.request, requests.RunWorker):
            return ()
        if self.is_down(call.cluster, now):
            return (Rejection(UNREACHABLE),)
        elapsed = Ms(now - self._start)
        return tuple(
            counter.fault.effect
            for counter in self._counters
            if counter.fault.frequency.includes(elapsed)
            and counter.fault.when.matches(call)
            and counter.count_call(self._seed)
        )

    def is_down(self, cluster: str, now: Ms) -> bool:
        """Return whether a cluster is unreachable."""
        elapsed = Ms(now - self._start)
        return any(
            frequency.includes(elapsed) and when.matches_cluster(cluster)
            for frequency, when in self._outages
        )

    def timed_faults(self) -> tuple[TimedFault, ...]:
        """Return the timed faults, the earliest first; `at` is a time of the world's clock."""
        return self._timed_faults


class _FaultCounter:
    """The number of calls that matched a fault, and of those that it hit."""

    __slots__ = ("_hits", "_matched", "_number", "fault")

    def __init__(self, fault: CallFault, number: int) -> None:
        self.fault = fault
        self._number = number
        self._matched = 0
        self._hits = 0

    def count_call(self, seed: int) -> bool:
        """Count a matching call, and return whether the fault hits it."""
        frequency = self.fault.frequency
        self._matched += 1
        if frequency.times is not None and self._hits >= frequency.times:
            return False
        if frequency.probability is None:
            is_hit = self._matched % frequency.every == 0
        else:
            is_hit = _pseudo_random(seed, self._number, self._matched) < frequency.probability
        self._hits += is_hit
        return is_hit


def _pseudo_random(seed: int, number: int, count: int) -> float:
    """Return a number from 0 to just below 1: the same on every machine, in every process."""
    digest = hashlib.blake2b(f"{seed}/{number}/{count}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def _expand_timed_faults(faults: Sequence[Fault]) -> list[TimedFault]:
    timed_faults = []
    for fault in faults:
        if isinstance(fault, TimedFault):
            timed_faults.append(fault)
            if isinstance(fault.effect, Outage) and fault.effect.until is not None:
                timed_faults.append(TimedFault(fault.effect.until, Recovery(), fault.when))
    return sorted(timed_faults, key=lambda timed_fault: timed_fault.at)


SCENARIO_VERBS: Mapping[type[requests.Request], str] = {
    requests.Get: "get",
    requests.List: "list",
    requests.Watch: "watch",
    requests.Logs: "logs",
    requests.Discover: "kinds",
    requests.RawGet: "http",
}
"""The verb of each read request in scenario files."""


def request_verb(request: requests.Request) -> str:
    """Return the verb of a request in a scenario; empty for local work."""
    match request:
        case requests.Write():
            return request.verb.value
        case requests.RunWorker():
            return ""
        case _:
            return SCENARIO_VERBS[type(request)]


def _request_ref(request: requests.Request) -> Ref | None:
    match request:
        case requests.Get() | requests.Write() | requests.Logs():
            return request.ref
        case requests.List() | requests.Watch():
            return _selection_ref(request.selection)
        case requests.Discover() | requests.RawGet() | requests.RunWorker():
            return None


def _selection_ref(selection: requests.Selection) -> Ref:
    """Return the reference of a selection, with a name if its field selector requires one.

    Like `NewRequestInfo` in `pkg/endpoints/request/requestinfo.go` of k8s.io/apiserver 0.36.4.
    """
    try:
        name_requirements = [
            requirement
            for requirement in parse_field_selector(selection.field_selector)
            if requirement[:2] == ("metadata.name", "In")
        ]
    except SelectorError:
        name_requirements = []
    return Ref(
        selection.kind,
        selection.namespace,
        str(name_requirements[0].values[0]) if name_requirements else "",
    )
