"""The other processes: whether they live, and how they are asked for a unit.

A process is seen once for all units that it holds, and by our own clock only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tidegate.engine.heartbeat import (
    GIVE_WAY,
    LASTS,
    Wish,
    lease_ref,
    note_of,
    read_lease,
    read_wishes,
)
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.record import LASTING, Now
from tidegate.engine.stored import NAMESPACE
from tidegate.errors import Place
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Ref
from tidegate.world.calls import Get, Verb, Write
from tidegate.world.facts import Done, Missing, Outcome
from tidegate.world.refusals import refusal_error


@dataclass(slots=True)
class Neighbour:
    """What we have seen of another process."""

    mark: tuple[str, str, int] = ("", "", 0)
    """What changes with each renewal. It is compared with itself only."""
    since: Ms = Ms(0)
    """When we first saw it so."""
    first: Ms = Ms(0)
    """When we first saw the process at all."""
    dead_at: Ms | None = None
    """It was dead at this moment, and could hold nothing that was written before."""
    asked: dict[str, Wish] = field(default_factory=dict)
    """What it has been asked for, by the names of records."""


@dataclass(slots=True)
class Rivals:
    """Processes with other plans for our units: one of two gives way to the other, everywhere.

    Who is asked gives way. Two that have asked each other go by their names, so that both come to
    the same.
    """

    ours: str
    _asked: set[str] = field(default_factory=set)
    _yielded: set[str] = field(default_factory=set)

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


@dataclass(slots=True)
class Neighbours:
    """The other processes at work in one cluster, each seen once for all units."""

    cluster: str
    namespace: str = NAMESPACE
    known: dict[str, Neighbour] = field(default_factory=dict)

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
