"""One selection kept whole: list, then watch, for as long as somebody wants it.

Hears what the world says of its requests and answers with a `Turn`: what to send next, whether to
hang up, and what the caller is told. After a gap it lists again and tells the difference, so that
the caller sees each change of state once and never learns of expired versions, lost streams or
silence. Keeps the objects of its selection as bytes, in the view asked for, and nothing else.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.model.objects import Live, Ref
from tidegate.world import facts
from tidegate.world.backoff import pause
from tidegate.world.calls import List, Selection, Ticket, Watch

PAGE = 500
QUIET = Ms(2 * MINUTE)
"""Servers send a bookmark about once a minute, so a stream that says nothing for two is broken."""
SHORT_LIFE = SECOND
"""A stream that is closed sooner than this, and said nothing, was not worth opening at once."""


class MirrorStage(StrEnum):
    LISTING = "listing"
    WATCHING = "watching"
    RESTING = "resting"
    OVER = "over"


class MirrorTurn(msgspec.Struct, frozen=True):
    """What follows from a fact: a request to send, a stream to end, facts for the caller."""

    send: List | Watch | None = None
    hang_up: bool = False
    changes: tuple[facts.Changed, ...] = ()
    whole_at: str = ""
    refused: facts.Refusal | None = None


NOTHING = MirrorTurn()


class Mirror:
    """The state of one selection, for the caller who holds `ticket`."""

    def __init__(
        self, ticket: Ticket, selection: Selection, *, since: str, seed: int = 0, quiet: Ms = QUIET
    ) -> None:
        self.ticket = ticket
        self.selection = selection
        self.alarm: Ms | None = None
        self._seed = seed
        self._quiet = quiet
        self._version = since
        self._stage = MirrorStage.RESTING
        self._known: dict[Ref, Live] = {}
        self._unseen: set[Ref] = set()
        self._opened = Ms(0)
        self._troubles = 0

    def begin(self, now: Ms) -> MirrorTurn:
        """Start: with a list, or from the version that the caller has."""
        return self._watch(now) if self._version else self._list()

    def listed(self, outcome: facts.Outcome, now: Ms) -> MirrorTurn:
        """Hear a page of the list."""
        match outcome:
            case facts.Listed():
                changes = tuple(change for live in outcome.items for change in self._compare(live))
                if outcome.resume:
                    page = List(self.selection, PAGE, outcome.resume)
                    return MirrorTurn(send=page, changes=changes)
                gone = self._forget(self._unseen)
                self._unseen = set()
                self._version = outcome.version
                watching = self._watch(now)
                return MirrorTurn(
                    send=watching.send, changes=changes + gone, whole_at=outcome.version
                )
            case facts.Expired():
                return self._list()
            case facts.Forbidden() | facts.NotServed():
                return self._give_up(outcome)
            case facts.Throttled() | facts.Failed() | facts.Lost():
                return self._rest(now, outcome)
            case _:
                raise AssertionError(outcome)

    def changed(self, change: facts.Change, live: Live, now: Ms) -> MirrorTurn:
        """Hear a change from the stream. What the caller knows already is not told again."""
        self._heard(now, live.version)
        if change is facts.Change.DELETED:
            self._known.pop(live.ref, None)
            return MirrorTurn(changes=(facts.Changed(self.ticket, facts.Change.DELETED, live),))
        return MirrorTurn(changes=self._compare(live, change))

    def bookmarked(self, version: str, now: Ms) -> MirrorTurn:
        """Hear that nothing is missing up to a version."""
        self._heard(now, version)
        return NOTHING

    def ended(self, outcome: facts.Refusal | None, now: Ms) -> MirrorTurn:
        """Hear that the stream is over: take it up where it was, or list again."""
        match outcome:
            case facts.Expired():
                return self._list()
            case facts.Forbidden() | facts.NotServed():
                return self._give_up(outcome)
            case None if now - self._opened >= SHORT_LIFE:
                self._troubles = 0
                return self._watch(now)
            case _:
                return self._rest(now, outcome)

    def due(self, now: Ms) -> MirrorTurn:
        """The alarm rang: a rest is over, or the stream has been silent for too long."""
        if self.alarm is None or now < self.alarm:
            return NOTHING
        if self._stage is MirrorStage.WATCHING:
            watching = self._watch(now)
            return MirrorTurn(send=watching.send, hang_up=True)
        return self._watch(now) if self._version else self._list()

    def _list(self) -> MirrorTurn:
        self._stage = MirrorStage.LISTING
        self._version = ""
        self._unseen = set(self._known)
        self.alarm = None
        return MirrorTurn(send=List(self.selection, PAGE))

    def _watch(self, now: Ms) -> MirrorTurn:
        self._stage = MirrorStage.WATCHING
        self._opened = now
        self.alarm = Ms(now + self._quiet)
        return MirrorTurn(send=Watch(self.selection, self._version))

    def _rest(self, now: Ms, outcome: facts.Refusal | None) -> MirrorTurn:
        self._stage = MirrorStage.RESTING
        self._troubles += 1
        asked = outcome.after if isinstance(outcome, facts.Throttled | facts.Failed) else None
        rest = pause(self._troubles, seed=self._seed, ticket=self.ticket, at_least=asked)
        self.alarm = Ms(now + rest)
        return NOTHING

    def _give_up(self, refused: facts.Refusal) -> MirrorTurn:
        """A kind that is gone took its objects along; what is hidden may still be there."""
        self._stage = MirrorStage.OVER
        self.alarm = None
        gone = self._forget(set(self._known)) if isinstance(refused, facts.NotServed) else ()
        return MirrorTurn(changes=gone, refused=refused)

    def _heard(self, now: Ms, version: str) -> None:
        self._version = version
        self._troubles = 0
        self.alarm = Ms(now + self._quiet)

    def _compare(
        self, live: Live, change: facts.Change = facts.Change.ADDED
    ) -> tuple[facts.Changed, ...]:
        self._unseen.discard(live.ref)
        before = self._known.get(live.ref)
        self._known[live.ref] = live
        if before is None:
            return (facts.Changed(self.ticket, change, live),)
        if before.uid != live.uid:
            return (
                facts.Changed(self.ticket, facts.Change.DELETED, before),
                facts.Changed(self.ticket, facts.Change.ADDED, live),
            )
        if before.version == live.version:
            return ()
        return (facts.Changed(self.ticket, facts.Change.MODIFIED, live),)

    def _forget(self, refs: set[Ref]) -> tuple[facts.Changed, ...]:
        return tuple(
            facts.Changed(self.ticket, facts.Change.DELETED, self._known.pop(ref))
            for ref in sorted(refs)
        )
