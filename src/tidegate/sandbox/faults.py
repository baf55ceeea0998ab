"""What goes wrong, when, and for whom: seeded faults of a simulated cluster.

A world asks `Faults.for_call` about each call it is handed, and puts `Faults.moments` on its agenda
when it starts. What is answered depends on the seed, the faults and the calls so far, and when they
came: there is no clock here and nothing random.

    CallEffect   Refuse | Slow | Lose      what becomes of one call
                 Drop | Silence            what becomes of the stream that a watch opens
    TimedEffect  Drop | Silence            what becomes of all streams that are open
                 Down | Up | Compact       what becomes of a cluster
                 Edit                      what somebody else does to an object
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from tidegate.model.labels import SelectorError, read_fields
from tidegate.model.moment import SECOND, Ms, after
from tidegate.model.objects import Ref
from tidegate.world import calls
from tidegate.world.facts import Conflict, Failed, Loss, Lost, Refusal, Sent, Throttled

WRITES = tuple(verb.value for verb in calls.Verb)
VERBS = (*WRITES, "get", "list", "watch", "logs", "kinds", "http")

CONFLICT: Final = Conflict(
    "Operation cannot be fulfilled: the object has been modified;"
    " please apply your changes to the latest version and try again (seeded fault)"
)
ERROR: Final = Failed(500, "InternalError", "Internal error occurred: seeded fault")
DISCONNECTED: Final = Lost(Sent.MAYBE, Loss.DISCONNECTED, "connection reset by peer (seeded fault)")
UNREACHABLE: Final = Lost(Sent.NO, Loss.REFUSED, "connection refused (seeded fault)")


def throttled(pause: Ms = SECOND) -> Throttled:
    """The refusal of a server that wants to be left alone for a while."""
    return Throttled("Too many requests, please try again later (seeded fault)", pause)


class Refuse(msgspec.Struct, frozen=True):
    """The call is not performed. Its outcome is this; a watch ends with it."""

    outcome: Refusal


class Slow(msgspec.Struct, frozen=True):
    """The answer comes later by this much; a watch opens later."""

    by: Ms


class Lose(msgspec.Struct, frozen=True):
    """The connection breaks and the outcome is `DISCONNECTED`, performed or not."""

    performed: bool


class Drop(msgspec.Struct, frozen=True):
    """A stream breaks with `DISCONNECTED`, so long after it was opened."""

    after: Ms = Ms(0)


class Silence(msgspec.Struct, frozen=True):
    """A stream stays open and tells nothing, so long after it was opened; no span: for good.

    What happens meanwhile is held back, bookmarks included, and told when the silence is over.
    """

    span: Ms | None = None
    after: Ms = Ms(0)


class Down(msgspec.Struct, frozen=True):
    """Nobody listens any more: streams break, and whatever waits for an answer gets none."""

    until: Ms | None = None


class Up(msgspec.Struct, frozen=True):
    """Somebody listens again, unless another `Down` is not over: ask `Faults.is_down`."""


class Compact(msgspec.Struct, frozen=True):
    """Versions and continue tokens up to now expire; open streams live on."""


class Edit(msgspec.Struct, frozen=True):
    """Somebody else writes to an object."""

    write: calls.Write


CallEffect: TypeAlias = Refuse | Slow | Lose | Drop | Silence
TimedEffect: TypeAlias = Drop | Silence | Down | Up | Compact | Edit


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls, watches or clusters are meant. None and no verbs mean any."""

    cluster: str | None = None
    verbs: tuple[str, ...] = ()
    group: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    manager: str | None = None

    def fits(self, call: calls.Call) -> bool:
        """Whether a call is meant."""
        request = call.request
        if self.verbs and verb_of(request) not in self.verbs:
            return False
        manager = request.manager if isinstance(request, calls.Write) else ""
        if self.manager is not None and self.manager != manager:
            return False
        return self.covers_cluster(call.cluster) and self._fits_ref(_ref_of(request))

    def covers_cluster(self, cluster: str) -> bool:
        """Whether a cluster is meant."""
        return self.cluster is None or self.cluster == cluster

    def covers_watch(self, selection: calls.Selection, *, cluster: str) -> bool:
        """Whether an open watch is meant."""
        return self.covers_cluster(cluster) and self._fits_ref(_ref_of_selection(selection))

    def _fits_ref(self, ref: Ref | None) -> bool:
        if ref is None:
            wanted = (self.group, self.kind, self.namespace, self.name)
            return all(part is None for part in wanted)
        pairs = (
            (self.group, ref.kind.group),
            (self.kind, ref.kind.name),
            (self.namespace, ref.namespace),
            (self.name, ref.name),
        )
        return all(wanted is None or wanted == found for wanted, found in pairs)


EVERYTHING: Final = Match()


class Often(msgspec.Struct, frozen=True, kw_only=True):
    """How often: of the matching calls between two moments each nth, or some by chance.

    `times` is the most that are hit. The moments count from the start of the sandbox.
    """

    every: int = 1
    probability: float | None = None
    times: int | None = None
    start: Ms = Ms(0)
    until: Ms | None = None

    def covers(self, moment: Ms) -> bool:
        return self.start <= moment and (self.until is None or moment < self.until)


ALWAYS: Final = Often()


class CallFault(msgspec.Struct, frozen=True):
    """Meets calls as they come."""

    effect: CallEffect
    when: Match = EVERYTHING
    often: Often = ALWAYS


class TimedFault(msgspec.Struct, frozen=True):
    """Happens by itself at a moment."""

    at: Ms
    effect: TimedEffect
    when: Match = EVERYTHING


Fault: TypeAlias = CallFault | TimedFault


class Faults:
    """The faults of one sandbox, and how often each has been met."""

    def __init__(self, faults: Sequence[Fault] = (), *, seed: int = 0, start: Ms = Ms(0)) -> None:
        self._seed = seed
        self._start = start
        self._moments = tuple(
            msgspec.structs.replace(moment, at=after(start, moment.at))
            for moment in _moments_of(faults)
        )
        self._downs = tuple(
            (Often(start=fault.at, until=fault.effect.until), fault.when)
            for fault in faults
            if isinstance(fault, TimedFault) and isinstance(fault.effect, Down)
        )
        self._tallies = [
            _Tally(fault, number)
            for number, fault in enumerate(faults)
            if isinstance(fault, CallFault)
        ]

    def for_call(self, call: calls.Call, now: Ms) -> tuple[CallEffect, ...]:
        """What becomes of a call, in the order of the faults. Ask once for each call.

        Of many `Refuse` and `Lose` the first counts; the pauses of many `Slow` add up.
        """
        if isinstance(call.request, calls.Local):
            return ()
        if self.is_down(call.cluster, now):
            return (Refuse(UNREACHABLE),)
        passed = Ms(now - self._start)
        return tuple(
            tally.fault.effect
            for tally in self._tallies
            if tally.fault.often.covers(passed)
            and tally.fault.when.fits(call)
            and tally.hit(self._seed)
        )

    def is_down(self, cluster: str, now: Ms) -> bool:
        """Whether nobody listens at this cluster."""
        passed = Ms(now - self._start)
        return any(
            often.covers(passed) and when.covers_cluster(cluster) for often, when in self._downs
        )

    def moments(self) -> tuple[TimedFault, ...]:
        """What happens by itself, earliest first; `at` is a moment of the world's clock."""
        return self._moments


class _Tally:
    """How many calls a fault has met, and how many of them it has hit."""

    __slots__ = ("_hit", "_met", "_number", "fault")

    def __init__(self, fault: CallFault, number: int) -> None:
        self.fault = fault
        self._number = number
        self._met = 0
        self._hit = 0

    def hit(self, seed: int) -> bool:
        """Count one more matching call, and say whether it is hit."""
        often = self.fault.often
        self._met += 1
        if often.times is not None and self._hit >= often.times:
            return False
        if often.probability is None:
            is_hit = self._met % often.every == 0
        else:
            is_hit = _chance(seed, self._number, self._met) < often.probability
        self._hit += is_hit
        return is_hit


def _chance(seed: int, number: int, count: int) -> float:
    """A number from 0 to just below 1: the same on every machine, in every process."""
    digest = hashlib.blake2b(f"{seed}/{number}/{count}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def _moments_of(faults: Sequence[Fault]) -> list[TimedFault]:
    moments = []
    for fault in faults:
        if isinstance(fault, TimedFault):
            moments.append(fault)
            if isinstance(fault.effect, Down) and fault.effect.until is not None:
                moments.append(TimedFault(fault.effect.until, Up(), fault.when))
    return sorted(moments, key=lambda moment: moment.at)


def verb_of(request: calls.Request) -> str:
    """The word for a request in a scenario; work of this machine has none."""
    match request:
        case calls.Write():
            return request.verb.value
        case (
            calls.Get() | calls.List() | calls.Watch() | calls.Logs() | calls.Kinds() | calls.Http()
        ):
            return type(request).__name__.lower()
        case calls.Local():
            return ""


def _ref_of(request: calls.Request) -> Ref | None:
    match request:
        case calls.Get() | calls.Write() | calls.Logs():
            return request.ref
        case calls.List() | calls.Watch():
            return _ref_of_selection(request.selection)
        case calls.Kinds() | calls.Http() | calls.Local():
            return None


def _ref_of_selection(selection: calls.Selection) -> Ref:
    """A selection has a name where it asks for one, as in Kubernetes' own reading of requests."""
    try:
        named = [one for one in read_fields(selection.fields) if one[:2] == ("metadata.name", "In")]
    except SelectorError:
        named = []
    return Ref(selection.kind, selection.namespace, str(named[0].values[0]) if named else "")
