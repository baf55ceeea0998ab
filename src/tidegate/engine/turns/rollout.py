"""The state of a rollout: which step is where, and what each of its objects waits for.

Only `decide` changes it. An input finds what it concerns by name; nothing is ever scanned.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import StrEnum

from tidegate.engine.vocabulary import Command, Decision, Judged, Spot, Stand, Trouble, Written
from tidegate.model.event import FINAL, Event, StepState, Told, told_of
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Item, Plan, Step
from tidegate.model.semantics import Semantics


class ItemState(StrEnum):
    PENDING = "pending"
    DELETING = "deleting"
    WRITING = "writing"
    GATING = "gating"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(slots=True)
class ItemRun:
    """One object on its way."""

    item: Item
    spot: Spot
    step: StepRun
    state: ItemState = ItemState.PENDING
    stand: Stand = Stand.ABSENT
    found: Written | None = None
    """What lived when the step was checked."""
    written: Written | None = None
    at: Ms = Ms(0)
    """When it was written."""
    judged: Judged | None = None
    bad_since: Ms | None = None
    """Since when it is Degraded or Suspended."""
    asked: bool = False
    """A write of it is not answered yet."""
    reapplied: int = 0
    probing: bool = False
    probed: bool = False
    probes: int = 0
    waits: str = ""
    """The sentence that was told last."""

    def forget(self) -> None:
        """Begin anew; what was judged last is still known."""
        self.state = ItemState.PENDING
        self.written = self.found = self.bad_since = None
        self.reapplied = self.probes = 0
        self.probed = False
        self.waits = ""

    def take_over(self, known: ItemRun) -> None:
        self.state, self.stand, self.found = known.state, known.stand, known.found
        self.written, self.at, self.judged = known.written, known.at, known.judged
        self.bad_since, self.probed, self.waits = known.bad_since, known.probed, known.waits


@dataclass(slots=True)
class StepRun:
    """One step on its way. `unmet` counts the edges that still hold it."""

    step: Step
    state: StepState = StepState.WAITING
    unmet: int = 0
    before: list[StepRun] = field(default_factory=list)
    after: list[StepRun] = field(default_factory=list)
    items: list[ItemRun] = field(default_factory=list)
    not_before: Ms = Ms(0)
    batch: int = 0
    outstanding: int = 0
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

    @property
    def is_final(self) -> bool:
        return self.state in FINAL


@dataclass(slots=True)
class Rollout:
    """One execution of a plan."""

    semantics: Semantics
    carries_on: bool = False
    """What lies behind a failed step starts all the same."""
    consents: bool = False
    """Somebody has agreed that what asks first is deleted."""
    digest: str = ""
    begun: Ms = Ms(0)
    steps: dict[str, StepRun] = field(default_factory=dict)
    items: dict[Spot, list[ItemRun]] = field(default_factory=dict)
    unfinished: int = 0
    busy: int = 0
    """How many answers to commands are outstanding."""
    attempts: dict[str, int] = field(default_factory=dict)
    """How often a step was tried again, or a unit where everything starts over."""
    stopped: str = ""
    yields: bool = False
    """A newer plan takes over."""
    successor: Plan | None = None
    """That plan, once it is known."""
    rescues: dict[str, list[StepRun]] = field(default_factory=dict)
    """By unit: the steps that have their turn when another failed."""
    hooked: bool = False
    """There are hooks, which are let go at the end."""
    ended: bool = False
    failed: bool = False
    _alarms: list[tuple[Ms, int, str]] = field(default_factory=list)
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

    def order(self, command: Command) -> None:
        self.commands.append(command)

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
        name = step.step.id if step else ""
        self.events.append(Event(self.now, told, name, ref, reason, sentence, until))

    def enter(
        self, step: StepRun, state: StepState, *, reason: str = "", sentence: str = ""
    ) -> None:
        """Put a step into a state and tell so."""
        step.state = state
        if state in FINAL:
            self.rollout.unfinished -= 1
        self.tell(told_of(state), step, reason=reason, sentence=sentence)

    def ring_at(self, moment: Ms, step: StepRun) -> None:
        self.rollout.ring_at(moment, step.step.id)

    def decision(self) -> Decision:
        return Decision(
            self.commands, self.events, None if self.rollout.ended else self.rollout.alarm
        )
