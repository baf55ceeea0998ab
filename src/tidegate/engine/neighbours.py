"""The other processes, and what the units of one cluster share: our heartbeat, and who waits.

A process is seen once for all units that it holds, and by our own clock only.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.engine.heartbeat import (
    ASKS_AGAIN,
    GIVE_WAY,
    LASTS,
    Heartbeat,
    Wish,
    lease_ref,
    note_of,
    read_lease,
    read_wishes,
)
from tidegate.engine.reach.errands import Ask, Errand, Pause, together
from tidegate.engine.record import LASTING, Now, Record
from tidegate.engine.stored import NAMESPACE, list_heads
from tidegate.errors import Place
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Ref
from tidegate.world.calls import Get, Verb, Write
from tidegate.world.facts import Done, Missing, Outcome
from tidegate.world.refusals import refusal_error


class Neighbour(msgspec.Struct):
    """What we have seen of another process."""

    mark: tuple[str, str, int] = ("", "", 0)
    """What changes with each renewal. It is compared with itself only."""
    since: Ms = Ms(0)
    """When we first saw it so."""
    first: Ms = Ms(0)
    """When we first saw the process at all."""
    dead_at: Ms | None = None
    """It was dead at this moment, and could hold nothing that was written before."""
    asked: dict[str, Wish] = msgspec.field(default_factory=dict)
    """What it has been asked for, by the names of records."""


class Rivals(msgspec.Struct):
    """Processes with other plans for our units: one of two gives way to the other, everywhere.

    Who is asked gives way. Two that have asked each other go by their names, so that both come to
    the same.
    """

    ours: str
    _asked: set[str] = msgspec.field(default_factory=set)
    _yielded: set[str] = msgspec.field(default_factory=set)

    def ask(self, holder: str) -> None:
        """Note it before they can know, so that neither takes the other for the one who asks."""
        self._asked.add(holder)

    def yields_to(self, holder: str) -> bool:
        """Whether one who asks is given way to, now and from now on."""
        if holder in self._asked and self.ours > holder:
            return False
        self._yielded.add(holder)
        return True

    def has_yielded(self, holder: str) -> bool:
        return holder in self._yielded


class Neighbours(msgspec.Struct):
    """The other processes at work in one cluster, each seen once for all units."""

    cluster: str
    namespace: str = NAMESPACE
    known: dict[str, Neighbour] = msgspec.field(default_factory=dict)

    def is_dead(self, holder: str, since: Ms) -> bool:
        """Whether it holds nothing of what was there at a moment."""
        dead_at = self.known[holder].dead_at if holder in self.known else None
        return dead_at is not None and dead_at >= since

    def look(self, holder: str, now: Now) -> Errand[Neighbour]:
        """See whether a process lives; one that is dead is taken away, so that nobody waits again.

        It was alive when it wrote what we see, which is not after the answer came. It has not
        written since if it is still so when we ask after its whole term.
        """
        asked = now()
        seen = self.known.setdefault(holder, Neighbour(first=asked))
        ref = lease_ref(holder, self.namespace)
        (found,) = yield (Ask(self.cluster, Get(ref)),)
        seen.dead_at = None
        self._check(found, ref)
        if isinstance(found, Missing):
            seen.dead_at = asked
        if not isinstance(found, Done) or found.live is None:
            return seen
        live, lease = found.live, read_lease(found.live)
        spec = lease.spec
        mark = (live.uid, spec.renew_time or "", spec.lease_transitions or 0)
        seen.asked = read_wishes(lease)
        if mark != seen.mark:
            seen.mark, seen.since = mark, now()
        elif asked >= seen.since + (spec.lease_duration_seconds or LASTS // SECOND) * SECOND:
            write = Write(verb=Verb.DELETE, ref=ref, uid=live.uid, version=live.version)
            (gone,) = yield (Ask(self.cluster, write),)
            self._check(gone, ref)
            if isinstance(gone, Done | Missing):
                seen.dead_at = asked
        return seen

    @staticmethod
    def _check(outcome: Outcome, ref: Ref) -> None:
        """Whoever may not look would wait for ever."""
        if isinstance(outcome, LASTING):
            raise refusal_error(outcome, "seeing who holds the unit", where=Place(str(ref)))

    def ask_to_go(self, holder: str, record: str, wish: Wish) -> Ask:
        """Ask for a unit; its holder finds that when it renews."""
        note: Json = {"metadata": {"annotations": {GIVE_WAY + record: note_of(wish)}}}
        ref, body = lease_ref(holder, self.namespace), msgspec.json.encode(note)
        return Ask(self.cluster, Write(verb=Verb.PATCH, ref=ref, body=body))


FEW = 4
"""So many records are asked for by their names; more are listed."""


class Keeping(msgspec.Struct):
    """By unit, `waiting` are the records that somebody else holds and we want."""

    heartbeat: Heartbeat
    neighbours: Neighbours
    rivals: Rivals
    waiting: dict[str, Record] = msgspec.field(default_factory=dict)
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
