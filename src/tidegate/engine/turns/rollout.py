"""The state of a rollout: which step is where, and what each of its objects waits for.

Only `decide` changes it. An input finds what it concerns by name; nothing is ever scanned.
"""

from __future__ import annotations

import heapq
from enum import StrEnum

import msgspec

from tidegate.engine.vocabulary import (
    Command,
    Decision,
    Judged,
    Stand,
    Superseded,
    Trouble,
    Written,
)
from tidegate.model.change import Fate, FieldChange
from tidegate.model.drift import ObjectDrift
from tidegate.model.event import FINAL, Event, StepState, Told, told_of
from tidegate.model.ledger import EntryEnd, HookRun
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref, Spot
from tidegate.model.plan import AWAITED, Item, PlannedUnit, Step
from tidegate.model.semantics import Semantics
from tidegate.model.unit import UnitId


class ItemState(StrEnum):
    PENDING = "pending"
    DELETING = "deleting"
    WRITING = "writing"
    GATING = "gating"
    PASSED = "passed"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    """It was made, and goes again: another one beside it is refused."""


ENDED = {ItemState.PASSED: True, ItemState.FAILED: False}
"""Whether an object that is no longer on its way has passed."""


class ItemRun(msgspec.Struct, eq=False):
    """One object on its way."""

    item: Item
    spot: Spot
    step: StepRun
    state: ItemState = ItemState.PENDING
    stand: Stand = Stand.ABSENT
    found: Written | None = None
    """What lived when the step was checked."""
    drift: ObjectDrift | None = None
    """What others had changed of it by then."""
    fields: tuple[FieldChange, ...] = ()
    """What differed then."""
    replaces: bool = False
    written: Written | None = None
    at: Ms = Ms(0)
    """When it was written."""
    judged: Judged | None = None
    finished: str = ""
    """The uid of what has come to a good end, and may remove itself."""
    bad_since: Ms | None = None
    """Since when it is Degraded or Suspended."""
    asked: bool = False
    """A write of it is not answered yet."""
    reapplied: int = 0
    probing: bool = False
    probed: bool = False
    probes: int = 0
    verified: tuple[int, str] = (0, "")
    """The generation and version of the last state that was found to hold what we wrote."""
    waits: str = ""
    """The sentence that was told last."""

    def forget(self) -> None:
        """Begin anew; what was judged last is still known."""
        self.state = ItemState.PENDING
        self.written = self.found = self.bad_since = None
        self.reapplied = self.probes = 0
        self.probed = False
        self.verified = (0, "")
        self.waits = ""

    def take_over(self, known: ItemRun) -> None:
        self.state, self.stand, self.found = known.state, known.stand, known.found
        self.written, self.at, self.judged = known.written, known.at, known.judged
        self.drift, self.fields, self.replaces = known.drift, known.fields, known.replaces
        self.bad_since, self.probed, self.waits = known.bad_since, known.probed, known.waits
        self.verified, self.finished = known.verified, known.finished


class StepRun(msgspec.Struct, eq=False):
    """One step on its way. `unmet` counts the edges that still hold it."""

    step: Step
    unit: UnitRun
    state: StepState = StepState.WAITING
    unmet: int = 0
    before: list[StepRun] = msgspec.field(default_factory=list)
    after: list[StepRun] = msgspec.field(default_factory=list)
    items: list[ItemRun] = msgspec.field(default_factory=list)
    not_before: Ms = Ms(0)
    batch: int = 0
    outstanding: int = 0
    attempts: int = 0
    """How often it was tried again."""
    approved: bool = False
    """Somebody lets it through its barrier."""
    void: bool = False
    """Somebody else has done what it was for."""
    held_for: str = ""
    """Why it does not start though no edge holds it, as it was told last."""
    trouble: Trouble | None = None
    """The first that came up; it counts when the others have settled."""
    open: int = 0
    """How many of its objects still hold its gate."""
    applied_at: Ms = Ms(0)
    deadline: Ms | None = None
    active_at: Ms = Ms(0)
    look_at: Ms | None = None
    looking: bool = False
    """Its objects are asked for, since its time is up."""
    looked: bool = False
    """They have just been told."""
    parts: int = 0
    """How many steps of what it expanded to are not at rest."""
    part_of: StepRun | None = None
    broken: str = ""
    """One of those that did not pass."""
    let_go: bool = False
    """Units that begin with it have their own way from then on, though it be tried again."""

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def is_at_work(self) -> bool:
        """Whether something of it may be written: it has begun, and not only to wait."""
        writes = self.items and not self.waits_only
        return bool(writes) and self.state is not StepState.WAITING and not self.is_final

    @property
    def waits_only(self) -> bool:
        """Whether all of its objects are others', and waited for."""
        return bool(self.items) and all(run.item.deed in AWAITED for run in self.items)

    @property
    def rules(self) -> Semantics:
        return self.unit.rules


class UnitRun(msgspec.Struct, eq=False):
    """One unit on its way; it ends by itself when it is at rest."""

    unit: PlannedUnit
    rules: Semantics
    slots: SlotsRun | None = None
    steps: list[StepRun] = msgspec.field(default_factory=list)
    rescues: list[StepRun] = msgspec.field(default_factory=list)
    """The steps that have their turn when another failed."""
    unfinished: int = 0
    busy: int = 0
    """How many answers to commands are outstanding."""
    attempts: int = 0
    """How often all of it was tried again."""
    outdated: bool = False
    """Before it is tried again, or goes on and asks late, somebody looks what it is by then."""
    asked: bool = False
    """That was done, and no answer has come."""
    remedying: bool = False
    """What it has for its failure is done, and it is tried again behind that."""
    failure: EntryEnd | None = None
    """How it has failed, when it was tried last."""
    rescued: tuple[HookRun, ...] = ()
    """What became of the hooks that were run for that."""
    unheld: bool = False
    """Somebody else may hold it: nothing of it is begun."""
    wanted: bool = False
    """It is asked for, since a step of it could begin."""
    admitted: bool = False
    """It has one of its group's slots."""
    approved: bool = False
    """Somebody lets it begin, and through its barriers."""
    awaits_approval: bool = False
    """It is listened for that."""
    due: bool = False
    """There is something to do in it."""
    began: Ms | None = None
    """When its windows first let something of it begin."""
    hooked: bool = False
    """There are hooks, which are let go at the end."""
    failed: bool = False
    stopped: str = ""
    """Why nothing more of it is begun."""
    left_for: str = ""
    """Why it is left out."""
    ended: bool = False

    @property
    def is_new(self) -> bool:
        """Whether no step of it has had its turn."""
        return all(step.state is StepState.WAITING for step in self.steps)

    @property
    def has_rescues(self) -> bool:
        """Whether something was done for its failure."""
        done = {StepState.PASSED, StepState.FAILED}
        return any(step.step.rescues and step.state in done for step in self.steps)

    @property
    def is_rescued(self) -> bool:
        """Whether all has passed that it has for its failure."""
        mine = [step for step in self.steps if step.step.rescues]
        return bool(mine) and all(step.state is StepState.PASSED for step in mine)

    def hook_runs(
        self, now: Ms, *, rescues: bool = False, failing: StepRun | None = None
    ) -> tuple[HookRun, ...]:
        """What became of its hooks, or of those that it has for its failure.

        What a step that has failed still waits for has failed, too.
        """
        mine = (one for step in self.steps if step.step.rescues is rescues for one in step.items)

        def passed(run: ItemRun) -> bool | None:
            is_lost = run.step is failing or run.step.state is StepState.FAILED
            return ENDED.get(run.state, False if is_lost else None)

        return tuple(
            HookRun(one.item.ref, one.at or now, now, passed(one), one.step.step.tests)
            for one in mine
            if one.item.hook is not None and one.state is not ItemState.PENDING
        )


class SlotsRun(msgspec.Struct):
    """How many units of a group are under way, and which wait for that."""

    group: str
    limit: int
    rests: bool = False
    """Who has failed, or waits for its next try or for who comes before it, has no slot."""
    under_way: int = 0
    failed: list[UnitId] = msgspec.field(default_factory=list)
    """Units that have failed, and keep their slots: who says how many may break at once."""
    queue: dict[UnitId, UnitRun] = msgspec.field(default_factory=dict)

    @property
    def is_stuck(self) -> bool:
        """Whether no slot will be free in this rollout."""
        return 0 < self.limit <= len(self.failed)


class Rollout(msgspec.Struct):
    """One execution of a plan."""

    digest: str = ""
    begun: Ms = Ms(0)
    units: dict[UnitId, UnitRun] = msgspec.field(default_factory=dict)
    steps: dict[str, StepRun] = msgspec.field(default_factory=dict)
    items: dict[Spot, list[ItemRun]] = msgspec.field(default_factory=dict)
    slots: dict[str, SlotsRun] = msgspec.field(default_factory=dict)
    running: int = 0
    """How many units are not at rest."""
    busy: int = 0
    """How many answers to commands are outstanding, in all units."""
    stopped: str = ""
    yields: bool = False
    """A newer plan takes over."""
    successor: Superseded | None = None
    """That plan, once it is known."""
    gave_up: str = ""
    """Why a unit was stopped while the others went on."""
    late: UnitId | None = None
    """One that may bring more by the end: before all ends, it is asked for the last time."""
    looking: bool = False
    """That was done, and no answer has come."""
    ended: bool = False
    failed: bool = False
    _alarms: list[tuple[Ms, int, str]] = msgspec.field(default_factory=list)
    _sequence: int = 0

    @property
    def held(self) -> bool:
        """Whether nothing new is to be begun."""
        return bool(self.stopped) or self.yields

    def ring_at(self, moment: Ms, step: str) -> None:
        self._sequence += 1
        heapq.heappush(self._alarms, (moment, self._sequence, step))

    def rung(self, now: Ms) -> list[str]:
        """The steps whose alarms have come, each once, in the order of their alarms."""
        due: dict[str, None] = {}
        while self._alarms and self._alarms[0][0] <= now:
            due[heapq.heappop(self._alarms)[2]] = None
        return list(due)

    @property
    def alarm(self) -> Ms | None:
        return self._alarms[0][0] if self._alarms else None


class Turn:
    """One call of `decide`: the rollout, the time, and what comes of it."""

    def __init__(self, rollout: Rollout, now: Ms) -> None:
        self.rollout = rollout
        self.now = now
        self.commands: list[Command] = []
        self.events: list[Event] = []
        self.touched: dict[UnitId, UnitRun] = {}
        """The units that may have come to rest."""

    def order(self, command: Command) -> None:
        self.commands.append(command)

    def ask(self, unit: UnitRun) -> None:
        """An answer is outstanding from now on."""
        unit.busy += 1
        self.rollout.busy += 1

    def answered(self, unit: UnitRun) -> None:
        unit.busy -= 1
        self.rollout.busy -= 1
        self.touched[unit.unit.id] = unit

    def is_held(self, step: StepRun) -> bool:
        """Whether nothing new of it is to be begun."""
        return self.rollout.held or bool(step.unit.stopped)

    def tell(
        self,
        told: Told,
        step: StepRun | None = None,
        *,
        ref: Ref | None = None,
        reason: str = "",
        sentence: str = "",
        until: Ms = Ms(0),
    ) -> None:
        """Say something of a step, or of all; of joints nobody needs to hear."""
        if step is None:
            self.events.append(Event(self.now, told, "", ref, reason, sentence, until))
            return
        one = step.step
        if one.is_joint:
            return
        self.events.append(
            Event(self.now, told, one.id, ref, reason, sentence, until, one.unit, one.cluster)
        )

    def tell_deed(
        self,
        told: Told,
        run: ItemRun,
        operation: Fate,
        *,
        fields: tuple[FieldChange, ...] = (),
        reason: str = "",
        sentence: str = "",
    ) -> None:
        """Say what was done to an object, or need not be."""
        one, ref = run.step.step, run.item.ref
        event = Event(self.now, told, one.id, ref, reason, sentence, Ms(0), one.unit, one.cluster)
        self.events.append(msgspec.structs.replace(event, operation=operation, fields=fields))

    def tell_of_unit(
        self, told: Told, unit: UnitRun, *, ref: Ref | None = None, reason: str, sentence: str = ""
    ) -> None:
        name, cluster = unit.unit.id, unit.unit.cluster
        self.events.append(
            Event(self.now, told, "", ref, reason, sentence, unit=name, cluster=cluster)
        )

    def enter(
        self, step: StepRun, state: StepState, *, reason: str = "", sentence: str = ""
    ) -> None:
        """Put a step into a state and tell so."""
        step.state = state
        if state in FINAL:
            step.unit.unfinished -= 1
            self.touched[step.unit.unit.id] = step.unit
        self.tell(told_of(state), step, reason=reason, sentence=sentence)

    def ring_at(self, moment: Ms, step: StepRun) -> None:
        self.rollout.ring_at(moment, step.step.id)

    def decision(self) -> Decision:
        return Decision(
            self.commands, self.events, None if self.rollout.ended else self.rollout.alarm
        )
