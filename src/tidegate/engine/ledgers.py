"""What units' own tools keep of their rollouts, such as Helm's records of releases.

What is entered is not known here: a bookkeeper makes it of what is there. A ledger is read before a
rollout; what begins is entered before the first object is written, by whoever holds the unit, and
how it ended behind the last gate. Who is killed in between is known by the entry that is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from tidegate.engine.means import Bookkeeper
from tidegate.engine.reach.errands import Ask, Errand, acting_as, together
from tidegate.engine.reach.writing import trouble_of
from tidegate.engine.turns.rollout import ItemState, UnitRun
from tidegate.engine.vocabulary import Trouble
from tidegate.model.identity import Identity
from tidegate.model.ledger import Action, Entering, EntryEnd, HookRun, LedgerPlace
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Live, Ref, Spot
from tidegate.model.plan import PlannedUnit
from tidegate.model.unit import UnitId
from tidegate.world import facts
from tidegate.world.calls import List, Selection, Verb, Write

PAGE = 100
TRIES = 5
"""How often an entry is tried against others who write at the same time."""
NAMESPACE = Kind("", "v1", "Namespace")
PASSED = {ItemState.PASSED: True, ItemState.FAILED: False}


@dataclass(slots=True)
class _OpenLedger:
    """What stands in the ledger of a unit, and what is to be entered."""

    unit: PlannedUnit
    place: LedgerPlace
    keeper: Bookkeeper
    entries: tuple[Live, ...] = ()
    entering: Entering = field(default_factory=lambda: Entering(Action.KEEP))
    begun: bool = False
    ended: bool = False


class Ledgers:
    """The ledgers of a rollout, by unit."""

    def __init__(self, keeper: Bookkeeper | None) -> None:
        self._keeper = keeper
        self._books: dict[UnitId, _OpenLedger] = {}
        self._spots: set[Spot] = set()

    def read(self, units: Sequence[PlannedUnit]) -> Errand[facts.Refusal | None]:
        """Read what is entered; what is begun already is known better."""
        keeper = self._keeper
        if keeper is None:
            return None
        for unit in units:
            place = keeper.place(unit.id)
            if unit.id not in self._books and place is not None:
                self._books[unit.id] = _OpenLedger(unit, place, keeper)
        books = (self._books[unit.id] for unit in units if unit.id in self._books)
        unread = [one for one in books if not one.begun]
        looks = (acting_as(_identity(one), self._look(one)) for one in unread)
        outcomes = yield from together(looks)
        return next((one for one in outcomes if one is not None), None)

    def entering(self, unit: UnitId) -> Entering | None:
        """What is to be entered; None for a unit without a ledger."""
        book = self._books.get(unit)
        return None if book is None else book.entering

    def has(self, spot: Spot) -> bool:
        """Whether an object is an entry."""
        return spot in self._spots

    def begin(self, unit: UnitId, now: Ms) -> Errand[Trouble | None]:
        """Enter what begins, unless that is done; what keeps us from it."""
        book = self._books.get(unit)
        if book is None or book.begun or not book.entering.is_due:
            return None
        return (yield from acting_as(_identity(book), self._begin(book, now)))

    def end(self, run: UnitRun, ended: EntryEnd, now: Ms) -> Errand[Trouble | None]:
        """Enter how it ended; also what has begun, where nothing had to be written for it."""
        book = self._books.get(run.unit.id)
        if book is None or book.ended or not book.entering.is_due:
            return None
        if not (book.begun or book.entering.goes_on or ended.passed):
            return None  # nothing of it was begun
        return (yield from acting_as(_identity(book), self._end(book, ended, now)))

    def _begin(self, book: _OpenLedger, now: Ms) -> Errand[Trouble | None]:
        keeper, name, wanted = book.keeper, book.unit.id, book.entering
        trouble: Trouble | None = None
        for _ in range(TRIES):
            writes = keeper.begin(name, book.entries, book.entering, now)
            trouble = yield from self._write_all(book, writes)
            if trouble is None:
                book.begun = True
                return None
            refused = yield from self._look(book)
            if refused is not None:
                return trouble_of(refused)
            if (book.entering.action, book.entering.number) != (wanted.action, wanted.number):
                why = "somebody else has released it meanwhile"
                return Trouble("Released", why, final=True)
        return trouble

    def _end(self, book: _OpenLedger, ended: EntryEnd, now: Ms) -> Errand[Trouble | None]:
        if not book.begun:
            trouble = yield from self._begin(book, now)
            if trouble is not None:
                return trouble
        trouble = None
        for _ in range(TRIES):
            writes = book.keeper.end(book.unit.id, book.entries, book.entering, ended, now)
            trouble = yield from self._write_all(book, writes)
            if trouble is None:
                book.ended = True
                return None
            refused = yield from self._read_entries(book)
            if refused is not None:
                return trouble_of(refused)
        return trouble

    def _write_all(self, book: _OpenLedger, writes: Iterable[Write]) -> Errand[Trouble | None]:
        """One after another, until one is refused."""
        for write in writes:
            trouble = yield from self._write(book, write)
            if trouble is not None:
                return trouble
        return None

    def _write(self, book: _OpenLedger, write: Write) -> Errand[Trouble | None]:
        """One entry; the namespace of the first is made where there is none."""
        cluster = book.unit.cluster
        self._spots.add(Spot(cluster, write.ref))
        (outcome,) = yield (Ask(cluster, write),)
        if isinstance(outcome, facts.Missing) and write.verb is Verb.CREATE:
            yield (Ask(cluster, _namespace(write.ref.namespace)),)
            (outcome,) = yield (Ask(cluster, write),)
        if isinstance(outcome, facts.Missing) and write.verb is Verb.DELETE:
            outcome = facts.Done(None)
        if isinstance(outcome, facts.Done):
            self._take(book, write.ref, outcome.live)
            return None
        return trouble_of(outcome, write.ref)

    def _take(self, book: _OpenLedger, ref: Ref, live: Live | None) -> None:
        others = (one for one in book.entries if one.ref != ref)
        book.entries = tuple(others) if live is None else (*others, live)

    def _look(self, book: _OpenLedger) -> Errand[facts.Refusal | None]:
        """Read the entries, and find out what follows from them."""
        refused = yield from self._read_entries(book)
        if refused is None:
            book.entering = book.keeper.intend(book.unit.id, book.entries)
        return refused

    def _read_entries(self, book: _OpenLedger) -> Errand[facts.Refusal | None]:
        place = book.place
        selection = Selection(place.kind, place.namespace, labels=place.labels)
        found: list[Live] = []
        resume = ""
        while True:
            (page,) = yield (Ask(book.unit.cluster, List(selection, PAGE, resume)),)
            if not isinstance(page, facts.Listed):
                return page if facts.is_refusal(page) else None
            found += page.items
            resume = page.resume
            if not resume:
                break
        book.entries = tuple(found)
        self._spots |= {Spot(book.unit.cluster, one.ref) for one in found}
        return None


def hooks_of(run: UnitRun, now: Ms) -> tuple[HookRun, ...]:
    """What became of the hooks of a unit in this rollout."""
    hooks = (one for step in run.steps for one in step.items if one.item.hook is not None)
    return tuple(
        HookRun(one.item.ref, one.at, now, PASSED.get(one.state))
        for one in hooks
        if one.state is not ItemState.PENDING
    )


def _identity(book: _OpenLedger) -> Identity | None:
    return book.unit.policy.identity


def _namespace(name: str) -> Write:
    body = {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": {"name": name}}
    return Write(verb=Verb.CREATE, ref=Ref(NAMESPACE, "", name), body=msgspec.json.encode(body))
