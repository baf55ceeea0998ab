"""Errands: a few calls one after another, while everything else goes on.

An errand is a generator. It yields what it asks for and is given the outcomes, in the same order.

    def rename(spot):
        (found,) = yield (Ask(spot.cluster, Get(spot.ref)),)
        ...
        return what_came_of_it
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import TypeAlias, TypeVar

import msgspec

from tidegate.model.identity import Identity
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.world.calls import Request, Ticket, Watch, Write
from tidegate.world.exchange import Party
from tidegate.world.facts import Loss, Lost, Outcome, Sent

Came = TypeVar("Came")


class Ask(msgspec.Struct, frozen=True):
    cluster: str
    request: Request
    urgent: bool = False
    identity: Identity | None = None


class Pause(msgspec.Struct, frozen=True):
    """Wait until a moment; no outcomes come of it."""

    until: Ms


Wish: TypeAlias = tuple[Ask, ...] | Pause
Errand: TypeAlias = Generator[Wish, tuple[Outcome, ...], Came]
Then: TypeAlias = Callable[[Came], None]


def acting_as(identity: Identity | None, errand: Errand[Came]) -> Errand[Came]:
    """The errand with the rights of somebody else, where they are not ours."""
    if identity is None:
        return (yield from errand)
    outcomes: tuple[Outcome, ...] | None = None
    try:
        while True:
            wish = next(errand) if outcomes is None else errand.send(outcomes)
            if not isinstance(wish, Pause):
                wish = tuple(msgspec.structs.replace(one, identity=identity) for one in wish)
            outcomes = yield wish
    except StopIteration as end:
        came: Came = end.value
        return came


def together(errands: Iterable[Errand[Came]]) -> Errand[list[Came]]:
    """Run several errands as one; what came of each, in their order.

    What they ask for at the same time is asked at once. A pause of one is over when it is time,
    and no other has an answer to wait for.
    """
    came: dict[int, Came] = {}
    wishes: dict[int, Wish] = {}
    under_way = tuple(errands)

    def go_on(place: int, outcomes: tuple[Outcome, ...] | None) -> None:
        wishes.pop(place, None)
        errand = under_way[place]
        try:
            wishes[place] = next(errand) if outcomes is None else errand.send(outcomes)
        except StopIteration as end:
            came[place] = end.value

    for place in range(len(under_way)):
        go_on(place, None)
    while wishes:
        asking = {place: wish for place, wish in wishes.items() if not isinstance(wish, Pause)}
        if asking:
            answers = iter((yield tuple(ask for wish in asking.values() for ask in wish)))
            for place, wish in asking.items():
                go_on(place, tuple(islice(answers, len(wish))))
            continue
        pauses = {place: wish for place, wish in wishes.items() if isinstance(wish, Pause)}
        first = min(pauses.values(), key=lambda pause: pause.until)
        yield first
        for place in [place for place, pause in pauses.items() if pause.until <= first.until]:
            go_on(place, ())
    return [came[place] for place in range(len(under_way))]


class _Trip(msgspec.Struct, eq=False):
    """An errand under way, and the outcomes that it still waits for."""

    resume: Callable[[tuple[Outcome, ...] | None], Wish | None]
    outcomes: list[Outcome | None] = msgspec.field(default_factory=list)
    missing: int = 0


class Errands:
    """All errands of one rollout. Answers find theirs by ticket."""

    def __init__(self, party: Party, until: Callable[[Ask], Ms | None] = lambda _: None) -> None:
        self._party = party
        self._until = until
        self._paused = 0
        self._waiting: dict[Ticket, tuple[_Trip, int, Ask]] = {}
        self._pausing: list[tuple[Ms, int, _Trip]] = []
        self.watches: dict[Ticket, str] = {}
        """The cluster of each watch, whose changes are told for as long as it lasts."""

    def run(self, errand: Errand[Came], then: Then[Came]) -> None:
        """Begin an errand; `then` hears what came of it, perhaps at once."""

        def resume(outcomes: tuple[Outcome, ...] | None) -> Wish | None:
            try:
                return next(errand) if outcomes is None else errand.send(outcomes)
            except StopIteration as end:
                then(end.value)
                return None

        trip = _Trip(resume)
        self._grant(trip, resume(None))

    def answered(self, ticket: Ticket, outcome: Outcome) -> bool:
        """Hand an answer to the errand that waits for it, if one does."""
        found = self._waiting.pop(ticket, None)
        if found is None:
            return False
        trip, place, ask = found
        if isinstance(outcome, Lost) and outcome.reason is Loss.LATE and self._is_early(ask):
            self._waiting[self._submit(ask)] = found
            return True
        trip.outcomes[place] = outcome
        trip.missing -= 1
        if not trip.missing:
            outcomes = tuple(one for one in trip.outcomes if one is not None)
            self._grant(trip, trip.resume(outcomes))
        return True

    def ring(self, now: Ms) -> None:
        while self._pausing and self._pausing[0][0] <= now:
            trip = heapq.heappop(self._pausing)[2]
            self._grant(trip, trip.resume(()))

    @property
    def alarm(self) -> Ms | None:
        return self._pausing[0][0] if self._pausing else None

    def withdraw_writes(self, is_meant: Callable[[str, Ref], bool]) -> None:
        """Let no write of these objects go any more; their errands hear that they are lost."""
        waiting = [(ticket, ask) for ticket, (_, _, ask) in self._waiting.items()]
        for ticket, ask in waiting:
            if not isinstance(ask.request, Write) or not is_meant(ask.cluster, ask.request.ref):
                continue
            sent = Sent.NO if self._party.cancel(ticket) else Sent.MAYBE
            self.answered(ticket, Lost(sent, Loss.WITHDRAWN, "it was withdrawn"))

    def withdraw(self) -> None:
        """Drop every errand and every watch; what was not sent yet never will be."""
        for ticket in (*self._waiting, *self.watches):
            self._party.cancel(ticket)
        self.watches.clear()
        self._waiting.clear()
        self._pausing.clear()

    def _is_early(self, ask: Ask) -> bool:
        """Whether it may be sent: the moment until which it may has moved."""
        until = self._until(ask)
        return until is None or self._party.now() < until

    def _submit(self, ask: Ask) -> Ticket:
        ticket = self._party.submit(
            ask.request,
            cluster=ask.cluster,
            identity=ask.identity,
            urgent=ask.urgent,
            until=self._until(ask),
        )
        if isinstance(ask.request, Watch):
            self.watches[ticket] = ask.cluster
        return ticket

    def _grant(self, trip: _Trip, wish: Wish | None) -> None:
        while wish is not None:
            if isinstance(wish, Pause):
                self._paused += 1
                heapq.heappush(self._pausing, (wish.until, self._paused, trip))
                return
            trip.outcomes = [None] * len(wish)
            trip.missing = len(wish)
            for place, ask in enumerate(wish):
                self._waiting[self._submit(ask)] = (trip, place, ask)
            if wish:
                return
            wish = trip.resume(())
