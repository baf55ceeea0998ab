"""What the units of one cluster share: our heartbeat, whom we know there, and who waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.engine.heartbeat import ASKS_AGAIN, Heartbeat
from tidegate.engine.neighbours import Neighbour, Neighbours, Rivals
from tidegate.engine.reach.errands import Ask, Errand, Pause, together
from tidegate.engine.record import Now, Record
from tidegate.engine.stored import list_heads
from tidegate.model.moment import Ms
from tidegate.world.calls import Get
from tidegate.world.facts import Done, Missing, Outcome

FEW = 4
"""So many records are asked for by their names; more are listed."""


@dataclass(slots=True)
class Keeping:
    """By unit, `waiting` are the records that somebody else holds and we want."""

    heartbeat: Heartbeat
    neighbours: Neighbours
    rivals: Rivals
    waiting: dict[str, Record] = field(default_factory=dict)
    looked: Ms = Ms(0)

    def look(self, record: Record, now: Now) -> Errand[Neighbour | None]:
        """See what has become of everything that is waited for; once a moment for all units.

        Who holds this one then; None if nobody does, or nothing is known of its holder yet.
        """
        if now() < self.looked + ASKS_AGAIN:
            yield Pause(Ms(self.looked + ASKS_AGAIN))
        if now() >= self.looked + ASKS_AGAIN:
            self.looked = now()
            records = list(self.waiting.values())
            yield from read_records(records, now)
            holders = dict.fromkeys(one.holder for one in records if one.holder)
            yield from together(self.neighbours.look(holder, now) for holder in holders)
        return self.neighbours.known.get(record.holder)


def read_records(records: Iterable[Record], now: Now) -> Errand[Outcome | None]:
    """Read many records of one cluster and namespace with few calls."""
    wanted = {one.ref.name: one for one in records}
    found = None
    if len(wanted) > FEW:
        first = next(iter(wanted.values()))
        found = yield from list_heads(first.cluster, first.ref.namespace)
    if found is None:
        asks = tuple(Ask(one.cluster, Get(one.ref)) for one in wanted.values())
        outcomes: tuple[Outcome, ...] = yield asks
    else:
        lives = (found.get(name) for name in wanted)
        outcomes = tuple(Missing("") if live is None else Done(live) for live in lives)
    pairs = zip(wanted.values(), outcomes, strict=True)
    refusals = yield from together(one.found(outcome, now) for one, outcome in pairs)
    return next((one for one in refusals if one is not None), None)
