"""Which call goes when.

Takes calls, says which are to be sent now, hears their outcomes, and says whether an outcome is
the caller's or the call goes again. Knows no transport and no clock: the time is an argument.

Sent again is what cannot do harm: what certainly was not sent or not looked at, and what comes to
the same when done twice. Everything else is handed to the caller, who knows what it meant.
"""

from __future__ import annotations

import heapq
from collections import deque

import msgspec
from msgspec import structs

from tidegate.model.moment import MINUTE, Ms
from tidegate.world.backoff import pause
from tidegate.world.calls import Call, Get, Ticket, Write, is_repeatable
from tidegate.world.facts import Failed, Loss, Lost, Outcome, Sent, Throttled
from tidegate.world.window import Window

SERVER_ERROR = 500


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call is tried before its caller hears of the trouble."""

    lost: Ms = Ms(2 * MINUTE)
    server_errors: int = 5


DEFAULT_PATIENCE = Patience()


class _Parcel(msgspec.Struct):
    call: Call
    since: Ms
    attempts: int = 0
    errors: int = 0
    sent_at: Ms = Ms(0)
    flying: bool = False
    maybe_sent: bool = False
    withdrawn: bool = False


class _Lane(msgspec.Struct):
    """One cluster's calls."""

    window: Window = msgspec.field(default_factory=Window)
    urgent: deque[_Parcel] = msgspec.field(default_factory=deque)
    ordinary: deque[_Parcel] = msgspec.field(default_factory=deque)
    flying: int = 0

    def take(self) -> _Parcel | None:
        """The next call that may go, urgent ones first."""
        for queue, urgent in ((self.urgent, True), (self.ordinary, False)):
            while queue and queue[0].withdrawn:
                queue.popleft()
            if queue and self.window.has_room(self.flying, urgent=urgent):
                return queue.popleft()
        return None


class Courier:
    """The calls of one world, by cluster."""

    def __init__(self, *, seed: int = 0, patience: Patience = DEFAULT_PATIENCE) -> None:
        self._seed = seed
        self._patience = patience
        self._lanes: dict[str, _Lane] = {}
        self._parcels: dict[Ticket, _Parcel] = {}
        self._resting: list[tuple[Ms, Ticket]] = []
        self._late: list[_Parcel] = []

    def accept(self, call: Call, now: Ms) -> None:
        """Take a call; `release` says when it goes."""
        parcel = _Parcel(call, now)
        self._parcels[call.ticket] = parcel
        self._queue(parcel)

    def release(self, now: Ms) -> list[Call]:
        """The calls to send now."""
        while self._resting and self._resting[0][0] <= now:
            _, ticket = heapq.heappop(self._resting)
            if parcel := self._parcels.get(ticket):
                self._queue(parcel)
        return [parcel.call for lane in self._lanes.values() for parcel in self._depart(lane, now)]

    def late(self) -> list[tuple[Ticket, Outcome]]:
        """The calls that `release` has given up, since their moment had passed."""
        late, self._late = self._late, []
        lost = Lost(Sent.NO, Loss.LATE, "its time was up before it was sent")
        return [(parcel.call.ticket, _final(parcel, lost)) for parcel in late]

    def answered(self, ticket: Ticket, outcome: Outcome, now: Ms) -> Outcome | None:
        """Hear what became of a call. None: it goes again, or nobody wants to know any more."""
        parcel = self._parcels.get(ticket)
        if parcel is None:
            return None
        lane = self._lanes[parcel.call.cluster]
        if isinstance(outcome, Throttled | Lost):
            lane.window.refused(now)
        elif isinstance(parcel.call.request, Get | Write):
            # A list takes as long as it is large: only single objects tell how the server feels.
            lane.window.answered(Ms(now - parcel.sent_at), now, in_flight=lane.flying)
        lane.flying -= 1
        parcel.flying = False
        if isinstance(outcome, Lost) and outcome.sent is Sent.MAYBE:
            parcel.maybe_sent = True
        if not self._goes_again(parcel, outcome, now):
            del self._parcels[ticket]
            return _final(parcel, outcome)
        asked = outcome.after if isinstance(outcome, Throttled | Failed) else None
        rest = pause(parcel.attempts, seed=self._seed, ticket=ticket, at_least=asked)
        heapq.heappush(self._resting, (Ms(now + rest), ticket))
        return None

    def withdraw(self, ticket: Ticket) -> tuple[bool, bool]:
        """Forget a call: whether it is with the world now, and whether it may have been sent."""
        parcel = self._parcels.pop(ticket, None)
        if parcel is None:
            return False, True
        if parcel.flying:
            self._lanes[parcel.call.cluster].flying -= 1
        parcel.withdrawn = True
        return parcel.flying, parcel.maybe_sent

    def alarm(self) -> Ms | None:
        """When `release` will have something again, if no answer comes before."""
        return self._resting[0][0] if self._resting else None

    def _queue(self, parcel: _Parcel) -> None:
        lane = self._lanes.setdefault(parcel.call.cluster, _Lane())
        (lane.urgent if parcel.call.urgent else lane.ordinary).append(parcel)

    def _depart(self, lane: _Lane, now: Ms) -> list[_Parcel]:
        departing = []
        while parcel := lane.take():
            if parcel.call.until is not None and now >= parcel.call.until:
                self._late.append(self._parcels.pop(parcel.call.ticket))
                continue
            parcel.attempts += 1
            parcel.sent_at = now
            parcel.flying = True
            lane.flying += 1
            departing.append(parcel)
        return departing

    def _goes_again(self, parcel: _Parcel, outcome: Outcome, now: Ms) -> bool:
        in_time = now - parcel.since < self._patience.lost
        match outcome:
            case Throttled():
                return in_time
            case Lost(reason=Loss.UNTRUSTED | Loss.CREDENTIALS | Loss.HANGING):
                return False
            case Lost(sent=Sent.NO):
                return in_time
            case Lost(sent=Sent.MAYBE):
                return in_time and is_repeatable(parcel.call.request)
            case Failed(status=status) if status >= SERVER_ERROR:
                parcel.errors += 1
                return (
                    in_time
                    and parcel.errors < self._patience.server_errors
                    and is_repeatable(parcel.call.request)
                )
            case _:
                return False


def _final(parcel: _Parcel, outcome: Outcome) -> Outcome:
    """A call that once may have been sent stays so, even if its last attempt was not."""
    if isinstance(outcome, Lost) and parcel.maybe_sent:
        return structs.replace(outcome, sent=Sent.MAYBE)
    return outcome
