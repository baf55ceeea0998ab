"""What the engine is handed: judgement of bodies that other parts know how to make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from tidegate.engine.vocabulary import Compared
from tidegate.model.account import UnitAccount
from tidegate.model.drift import ObjectDrift
from tidegate.model.ledger import Entering, EntryEnd, LedgerPlace
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Live, Ref, Spot
from tidegate.model.plan import Fragment, Item, Plan, PlannedUnit, Step
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Verdict
from tidegate.schema.fit import Misfit
from tidegate.world.calls import Local, Write
from tidegate.world.facts import Outcome

Body = dict[str, Json]


class FoundUnit(msgspec.Struct, frozen=True):
    """What a unit is found to be when its rollout begins.

    `begun`: when it began, perhaps in an earlier process. `stale`: objects that are the unit's and
    that Git no longer has.
    """

    begun: Ms
    stale: tuple[Body, ...] = ()


class Draft(msgspec.Struct, frozen=True):
    """What is written of an object; `replaces`: in the place of all that is there."""

    body: bytes
    replaces: bool = False


class Means(Protocol):
    """Pure questions about one object, and three about a plan."""

    def complete(self, plan: Plan, found: dict[UnitId, FoundUnit]) -> Plan:
        """The plan with what lives added to it: names, and deletions."""
        ...

    def without_hooks(self, plan: Plan, units: set[UnitId], *, but_tests: bool = False) -> Plan:
        """The plan without the hooks of these units, which have nothing else to do."""
        ...

    def without_settled(self, plan: Plan, settled: set[tuple[UnitId, Ref]]) -> Plan:
        """The plan without those of a unit's settled objects that it need not wait for.

        They are as wanted, and their gates have opened for this very text.
        """
        ...

    def script(self, unit: PlannedUnit, body: Body, now: Ms) -> Local | None:
        """The work that must be done elsewhere before an object can be judged, if any."""
        ...

    def scripted(self, work: Local, outcome: Outcome, body: Body) -> Verdict:
        """How it is, by what came of that work."""
        ...

    def judge(self, unit: PlannedUnit, body: Body, now: Ms) -> Verdict:
        """How it is, by the rules of its unit."""
        ...

    def stand(self, unit: PlannedUnit, item: Item, live: Body | None, seal: str) -> Compared:
        """How it stands against what lives; `seal` is of the write that brought this very text."""
        ...

    def changed(self, unit: PlannedUnit, item: Item, live: Body, seal: str) -> str:
        """Who has changed what of the fields we wrote; empty: nobody has."""
        ...

    def is_exempt(self, item: Item, live: Body | None) -> bool:
        """Whether it says itself that nobody shall look what others have changed of it."""
        ...

    def drift(self, unit: PlannedUnit, item: Item, live: Body | None) -> ObjectDrift | None:
        """What others have changed of it; None: nothing but whose fields they are."""
        ...

    def owner(self, body: Body) -> str:
        """The unit that an object says it belongs to; empty for none."""
        ...

    def misfit(self, item: Item, definition: bytes) -> Misfit | None:
        """What is wrong with its text, by the schema of its kind; None: nobody here knows it.

        `definition` is the CRD of its kind, where there is one.
        """
        ...

    def left_open(self, item: Item, live: Body | None) -> bytes:
        """What of it the rules here leave to the server, in a word of no meaning; empty: nothing.

        Objects of a kind with the same word get the same answer.
        """
        ...

    def draft(self, unit: PlannedUnit, item: Item, live: Body | None) -> Draft:
        """What is written of it, given what lives."""
        ...

    def seal(self, unit: PlannedUnit, item: Item, live: Body) -> str:
        """A name for what we brought, as a write has left it."""
        ...

    def adopt(self, unit: PlannedUnit, item: Item, live: Body) -> bytes | None:
        """The patch that makes fields of earlier appliers ours, where there are any."""
        ...


class FailingUnit(msgspec.Struct, frozen=True):
    """A unit that may fail: what it is about to write, what lives, and what has a namespace."""

    unit: PlannedUnit
    steps: tuple[Step, ...]
    find: Callable[[Ref], Live | None]
    is_namespaced: Callable[[Kind], bool | None]


class Bookkeeper(Protocol):
    """Knows which units keep a ledger, and what stands in it."""

    def place(self, unit: UnitId) -> LedgerPlace | None:
        """Where the entries of a unit lie; None: it keeps none."""
        ...

    def before(self, unit: UnitId) -> Sequence[UnitId]:
        """Units that end before it begins, and whose ledgers are closed by then."""
        ...

    def intend(self, unit: UnitId, entries: Sequence[Live]) -> Entering:
        """What a rollout of it is, by what is entered."""
        ...

    def begin(
        self, unit: UnitId, entries: Sequence[Live], entering: Entering, now: Ms
    ) -> tuple[Write, ...]:
        """What is written before anything of it is, one after another."""
        ...

    def remedy(
        self, failing: FailingUnit, entries: Sequence[Live], entering: Entering
    ) -> Fragment | None:
        """What is done if it fails: steps that rescue, in their order."""
        ...

    def intend_remedy(self, unit: UnitId, entries: Sequence[Live]) -> Entering:
        """What is entered when that begins."""
        ...

    def end(
        self, unit: UnitId, entries: Sequence[Live], entering: Entering, ended: EntryEnd, now: Ms
    ) -> tuple[Write, ...]:
        """What is written behind its last gate, one after another."""
        ...

    def review(
        self,
        unit: UnitId,
        entries: Sequence[Live],
        entering: Entering,
        *,
        ended: EntryEnd,
        now: Ms,
    ) -> tuple[Write, ...]:
        """What is written behind its tests, where it had ended before them."""
        ...


class Report(msgspec.Struct, frozen=True):
    """A merge patch of an own object, who writes it, and Events about it."""

    patch: bytes
    manager: str
    notes: tuple[tuple[Ref, bytes], ...] = ()


class Reporter(Protocol):
    """Knows where units' own objects are, and what is to be said there."""

    def place(self, unit: UnitId) -> Spot | None:
        """The own object of a unit; None: it has none, or nobody says anything there."""
        ...

    def follows(self, unit: UnitId) -> bool:
        """Whether it speaks of what the units say that it brings."""
        ...

    def report(self, account: UnitAccount, own: Body) -> Report | None:
        """What to write, given what is there; None: that says all of it."""
        ...
