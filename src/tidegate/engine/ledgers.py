"""What units' own tools keep of their rollouts, such as Helm's records of releases.

What is entered is not known here: a bookkeeper makes it of what is there. A ledger is read before a
rollout; what begins is entered before the first object is written, by whoever holds the unit, and
how it ended behind the last gate. Who is killed in between is known by the entry that is open.

    begun ── objects ── ended ── tests ── reviewed

Where a unit is tested, its entry ends before the first test begins, and how the tests went is
entered behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from tidegate.engine.means import Bookkeeper, FailingUnit
from tidegate.engine.reach.errands import Ask, Errand, acting_as, together
from tidegate.engine.reach.writing import trouble_of
from tidegate.engine.vocabulary import Trouble
from tidegate.model.identity import Identity
from tidegate.model.ledger import Action, Entering, EntryEnd, LedgerPlace
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Live, Ref, Spot
from tidegate.model.plan import Deed, Fragment, PlannedUnit, Step, items_of
from tidegate.model.unit import UnitId
from tidegate.world import facts
from tidegate.world.calls import List, Selection, Verb, Write

PAGE = 100
TRIES = 5
"""How often an entry is tried against others who write at the same time."""
NAMESPACE = Kind("", "v1", "Namespace")
PASSED = EntryEnd(passed=True)


class _OpenLedger(msgspec.Struct):
    """What stands in the ledger of a unit, and what is to be entered."""

    unit: PlannedUnit
    place: LedgerPlace
    keeper: Bookkeeper
    entries: tuple[Live, ...] = ()
    entering: Entering = msgspec.field(default_factory=lambda: Entering(Action.KEEP))
    begun: bool = False
    ended: bool = False
    tests: bool = False
    """It has ended, and is tested."""
    remedies: bool = False
    """What is entered is about a failure."""
    tried: bool = False
    """It has failed before, and is tried again."""

    @property
    def is_open(self) -> bool:
        """Whether what is entered has no end yet, whoever has begun it."""
        return self.begun or self.entering.goes_on


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

    def entries(self, unit: UnitId) -> tuple[bytes, ...]:
        """What is entered, as it stands."""
        book = self._books.get(unit)
        return () if book is None else tuple(one.body for one in book.entries)

    def has(self, spot: Spot) -> bool:
        """Whether an object is an entry."""
        return spot in self._spots

    def remedy(self, failing: FailingUnit) -> Fragment | None:
        """What is done about the failure of what begins; None: nothing, or nothing begins."""
        book = self._books.get(failing.unit.id)
        if book is None or not book.entering.is_due or book.remedies:
            return None
        return book.keeper.remedy(failing, book.entries, book.entering)

    def opens(self, step: Step) -> bool:
        """Whether something is entered before a step begins, though nothing be written in it."""
        book = self._books.get(step.unit)
        if book is None:
            return False
        if step.rescues:
            return book.is_open and not book.remedies
        if step.tests:
            return not book.tests
        is_new = book.entering.is_due and not book.entering.goes_on and _brings(step)
        return (book.tried or is_new) and not book.begun

    def begin(self, step: Step, ended: EntryEnd | None, now: Ms) -> Errand[Trouble | None]:
        """Enter what begins, unless that is done; what keeps us from it.

        `ended`: how the unit came out, where the step stands behind that.
        """
        book = self._books.get(step.unit)
        if book is None:
            return None
        if ended is None:
            begins = self._begin_anew(book, now)
        elif step.tests:
            begins = self._begin_tests(book, ended, now)
        else:
            begins = self._begin_remedy(book, ended, now)
        return (yield from acting_as(_identity(book), begins))

    def _begin_tests(self, book: _OpenLedger, ended: EntryEnd, now: Ms) -> Errand[Trouble | None]:
        """Enter that all of it is brought, before it is tested."""
        if book.tests or not book.entering.is_due:
            return None
        if book.entering.action is not Action.TEST:
            trouble = yield from self._end(book, ended, now)
            if trouble is not None:
                return trouble
        book.begun = book.ended = book.tests = True
        return None

    def _begin_remedy(
        self, book: _OpenLedger, failure: EntryEnd, now: Ms
    ) -> Errand[Trouble | None]:
        """Enter how it has failed, and what is done about that."""
        if not book.is_open or book.remedies:
            return None
        trouble = yield from self._come_out(book, failure, now)
        if trouble is not None:
            return trouble
        book.entering = book.keeper.intend_remedy(book.unit.id, book.entries)
        book.begun, book.ended, book.tests, book.remedies = False, False, False, True
        return (yield from self._begin(book, now)) if book.entering.is_due else None

    def _begin_anew(self, book: _OpenLedger, now: Ms) -> Errand[Trouble | None]:
        for name in book.keeper.before(book.unit.id):
            # All of its steps have passed; that it is let go of comes later, and by itself.
            trouble = yield from self.end(name, PASSED, PASSED, now)
            if trouble is not None:
                return trouble
        if book.tried and not book.begun:
            refused = yield from self._look(book)
            if refused is not None:
                return trouble_of(refused)
            if book.entering.problem:
                return Trouble("Ledger", book.entering.problem, final=True)
        if book.begun or not book.entering.is_due:
            return None
        return (yield from self._begin(book, now))

    def settle(
        self, unit: UnitId, failure: EntryEnd | None, remedied: EntryEnd, now: Ms
    ) -> Errand[Trouble | None]:
        """Enter how it has failed, or what was done about that: it is about to be tried again."""
        book = self._books.get(unit)
        if book is None or not book.is_open:
            return None
        ended = remedied if book.remedies else failure
        trouble = None
        if ended is not None:
            trouble = yield from acting_as(_identity(book), self._come_out(book, ended, now))
        book.entering = Entering(Action.KEEP)  # until it is looked at again
        book.begun, book.ended, book.tests, book.remedies = False, False, False, False
        book.tried = True
        return trouble

    def end(
        self, unit: UnitId, ended: EntryEnd, remedied: EntryEnd, now: Ms
    ) -> Errand[Trouble | None]:
        """Enter how it ended; also what has begun, where nothing had to be written for it."""
        book = self._books.get(unit)
        if book is None or not book.entering.is_due or (book.ended and not book.tests):
            return None
        ended = remedied if book.remedies else ended
        if not (book.begun or book.entering.goes_on or ended.passed):
            return None  # nothing of it was begun
        return (yield from acting_as(_identity(book), self._come_out(book, ended, now)))

    def _come_out(self, book: _OpenLedger, ended: EntryEnd, now: Ms) -> Errand[Trouble | None]:
        """Enter how it ended, or how its tests went where it is brought."""
        if not book.tests and book.entering.action is not Action.TEST:
            return (yield from self._end(book, ended, now))
        review = partial(book.keeper.review, book.unit.id, ended=ended, now=now)
        trouble = yield from self._enter(book, lambda: review(book.entries, book.entering))
        book.tests = book.tests and trouble is not None
        return trouble

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
        end, name = book.keeper.end, book.unit.id
        trouble = yield from self._enter(
            book, lambda: end(name, book.entries, book.entering, ended, now)
        )
        book.ended = trouble is None
        return trouble

    def _enter(
        self, book: _OpenLedger, writes: Callable[[], Iterable[Write]]
    ) -> Errand[Trouble | None]:
        """Write what follows from the entries there are; those are read again if others wrote."""
        trouble: Trouble | None = None
        for _ in range(TRIES):
            trouble = yield from self._write_all(book, writes())
            if trouble is None:
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


def _identity(book: _OpenLedger) -> Identity | None:
    return book.unit.policy.identity


def _brings(step: Step) -> bool:
    """Whether a step has objects of the unit, and does not only wait for those of others."""
    return any(item.deed is Deed.APPLY for item in items_of(step))


def _namespace(name: str) -> Write:
    body = {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": {"name": name}}
    return Write(verb=Verb.CREATE, ref=Ref(NAMESPACE, "", name), body=msgspec.json.encode(body))
