"""Where a rollout stands, as far as its events tell.

It changes with each event, and only as much as the event says: a rollout of a thousand objects
costs no more per event than one of ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from tidegate.errors import foreign
from tidegate.model.event import FINAL, LEFT, NOT_NEEDED, Event, StepState, Told
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan, Step, items_of
from tidegate.model.unit import UnitId
from tidegate.report.rollout.names import name_spot, name_step, name_unit, short_units

DEEDS = frozenset({Told.OBJECT_WRITTEN, Told.OBJECT_UNCHANGED, Told.OBJECT_PRUNED})
STATES = {f"step.{state}": state for state in StepState}
_foreign = lru_cache(maxsize=1_024)(foreign)
"""Many objects wait for the same reason."""
SLOTS = "Slots"
"""The reason of a step that waits until fewer units of its group are under way."""
MOST_PRINTED = 5
WHILE_WAITING = frozenset({Told.GATE_EXPLAINED, Told.LOG_PRINTED})
SETTLED = frozenset({Told.OBJECT_READY, Told.OBJECT_PRUNED, Told.HOOK_FINISHED})


class Wait(msgspec.Struct, frozen=True, gc=False):
    """An object that holds a gate: since when, why, and until when at the latest.

    `cause`: what keeps it from being ready, where that is known. `printed`: the last lines of its
    pods.
    """

    ref: Ref
    since: Ms
    reason: str
    sentence: str
    until: Ms
    cause: str = ""
    printed: tuple[str, ...] = ()


class Held(msgspec.Struct, frozen=True, gc=False):
    """A unit that another rollout holds: since when we wait for it, and what is known of that."""

    since: Ms
    sentence: str


def is_asking(event: Event) -> bool:
    """Whether a step waits for somebody, and not for a place among others."""
    return event.told is Told.STEP_WAITING and event.reason not in {"", SLOTS}


class Remark(msgspec.Struct, frozen=True, gc=False):
    """Something to be told of an object of a step."""

    step: str
    ref: Ref | None
    reason: str
    sentence: str


class StepCourse(msgspec.Struct):
    """One step on its way."""

    id: str
    unit: str
    name: str
    cluster: str = ""
    refs: tuple[Ref, ...] = ()
    rescues: bool = False
    owner: UnitId | None = None
    state: StepState = StepState.WAITING
    begun: Ms | None = None
    since: Ms = Ms(0)
    """When it came into its state."""
    again: Ms | None = None
    """When it is tried again."""
    looked: bool = False
    """Whether it was told what its gate waits for."""
    reason: str = ""
    sentence: str = ""
    trouble: str = ""
    """Why the last try did not end well."""
    deeds: dict[Ref, Told] = msgspec.field(default_factory=dict)
    waits: dict[Ref, Wait] = msgspec.field(default_factory=dict)

    @property
    def size(self) -> int:
        return max(len(self.refs), len(self.deeds))

    @property
    def settled(self) -> int:
        """How many of its objects need nothing more; not known before its gate was looked at."""
        if self.state is StepState.PASSED:
            return self.size
        if self.looked and self.state in {StepState.GATING, StepState.FAILED}:
            return len(self.deeds) - len(self.deeds.keys() & self.waits.keys())
        return 0

    @property
    def until(self) -> Ms:
        """The moment at which its gate gives up; 0 where that is not known."""
        return max((wait.until for wait in self.waits.values()), default=Ms(0))

    @property
    def is_idle(self) -> bool:
        """Whether it was there for a failure that did not come, or had nothing to do with one."""
        return self.rescues and self.begun is None

    def spent(self, now: Ms) -> Ms:
        end = self.since if self.state in FINAL else now
        return Ms(max(0, end - (end if self.begun is None else self.begun)))


class Course:
    """A rollout, from its plan and its events. `start` is the moment that times count from."""

    def __init__(self, start: Ms) -> None:
        self.start = start
        self.now = start
        self.steps: dict[str, StepCourse] = {}
        self.active: dict[str, StepCourse] = {}
        self.done: dict[str, StepCourse] = {}
        self.deeds: Counter[Told] = Counter()
        self.unproven: list[Remark] = []
        self.refused: list[Remark] = []
        self.faults: list[Event] = []
        """What of the plan cannot be taken, as it is known before anything is done."""
        self.kept: dict[Ref, None] = {}
        """What was to be pruned and is left alone."""
        self.left: dict[Ref, None] = {}
        """What asks for that itself."""
        self.held: dict[str, Held] = {}
        """By unit: those that are waited for before anything of them is done."""
        self.retries = 0
        self.result = ""
        self.sentence = ""
        self.is_late = False
        """Whether it was stopped as its time was over."""
        self._units: dict[str, str] = {}
        self._joints: set[str] = set()
        """Steps without objects, of which there is nothing to tell."""
        self._shortened = True
        """Whether the names of units are known to be as short as they can be."""

    def expect(self, plan: Plan) -> None:
        """Know the steps before they have their turn."""
        for step in plan.steps:
            known = self.steps.get(step.id)
            if step.is_joint:
                self._joints.add(step.id)
                continue
            if known is None:
                self._add(_planned(step))
            else:
                known.refs = _refs(step)

    def title(self, step: StepCourse) -> str:
        """A step's name, with its unit where there are several."""
        unit = self.unit_name(step.unit)
        return f"{unit} {step.name}" if unit else step.name

    def unit_name(self, unit: str) -> str:
        if not self._shortened:
            self._units, self._shortened = short_units(self._units), True
        return self._units.get(unit, unit)

    @property
    def counted(self) -> list[StepCourse]:
        """The steps that belong to every rollout of the plan, and those that had a turn."""
        return [step for step in self.steps.values() if not step.is_idle]

    @property
    def is_fresh(self) -> bool:
        """Whether no step has had its turn."""
        return not (self.active or self.done or self.result)

    def failures(self) -> list[StepCourse]:
        return [step for step in self.done.values() if step.state is StepState.FAILED]

    def struggling(self) -> list[StepCourse]:
        """The steps that were tried again, and have not passed."""
        return [step for step in self.steps.values() if step.trouble]

    def coming(self) -> Iterable[StepCourse]:
        """The steps that have not had their turn, in the order of the plan."""
        for step in self.steps.values():
            if step.state is StepState.WAITING and not step.rescues and step.id not in self.active:
                yield step

    def take(self, event: Event) -> None:
        self.now = max(self.now, event.at)
        if event.told is Told.ROLLOUT_ENDED:
            self.result, self.sentence = foreign(event.reason), foreign(event.sentence)
            return
        if event.told in {Told.UNIT_WAITING, Told.UNIT_TAKEN}:
            self._unit(event)
        if not event.step or event.step in self._joints:
            return
        step = self.steps.get(event.step) or self._add(_unplanned(event))
        state = STATES.get(event.told)
        if state is not None:
            self._enter(step, state, event)
        elif event.ref is not None:
            self._object(step, event, event.ref)
        if event.told is Told.RETRY_PLANNED:
            self._retry(step, event)

    def _unit(self, event: Event) -> None:
        unit = "" if event.unit is None else str(event.unit)
        known = self.held.pop(unit, None)
        if event.told is Told.UNIT_WAITING:
            since = known.since if known else event.at
            self.held[unit] = Held(since, foreign(event.sentence))

    def _add(self, step: StepCourse) -> StepCourse:
        self.steps[step.id] = step
        if step.unit not in self._units:
            self._units[step.unit], self._shortened = step.unit, False
        return step

    def _enter(self, step: StepCourse, state: StepState, event: Event) -> None:
        step.state, step.since, step.again = state, event.at, None
        step.reason, step.sentence = foreign(event.reason), foreign(event.sentence)
        if state in FINAL:
            step.trouble = ""
            if state is not StepState.FAILED:
                step.waits.clear()
            self.active.pop(step.id, None)
            self.done[step.id] = step
            return
        self.done.pop(step.id, None)
        self.held.pop(step.unit, None)
        if state is StepState.WAITING:
            self.active.pop(step.id, None)
            if is_asking(event):
                self.held[step.unit] = Held(event.at, step.sentence)
            return
        self.active[step.id] = step
        if step.begun is None:
            step.begun = event.at
        if state is StepState.CHECKING:
            step.looked = False
            step.waits.clear()

    def _retry(self, step: StepCourse, event: Event) -> None:
        self.retries += 1
        step.waits.clear()
        step.trouble = foreign(event.sentence)
        step.state, step.since, step.again = StepState.WAITING, event.at, event.until
        step.reason, step.sentence = foreign(event.reason), foreign(event.sentence)
        self.done.pop(step.id, None)
        self.active[step.id] = step

    def _object(self, step: StepCourse, event: Event, ref: Ref) -> None:
        told = event.told
        if told in DEEDS:
            self._deed(step, ref, told)
        if told is Told.OBJECT_KEPT:
            kept = self.left if event.reason == LEFT else self.kept
            kept[ref] = None
        if told in SETTLED:
            step.waits.pop(ref, None)
        elif told is Told.GATE_WAITING:
            self._wait(step, event, ref)
        elif told in WHILE_WAITING and ref in step.waits:
            step.waits[ref] = _learnt(step.waits[ref], event)
        elif told in {Told.GATE_UNPROVEN, Told.OBJECT_REFUSED}:
            remark = Remark(step.id, ref, event.reason, foreign(event.sentence))
            (self.unproven if told is Told.GATE_UNPROVEN else self.refused).append(remark)
            if told is Told.OBJECT_REFUSED and self.is_fresh:
                self.faults.append(event)

    def _wait(self, step: StepCourse, event: Event, ref: Ref) -> None:
        known = step.waits.get(ref)
        since, cause = (known.since, known.cause) if known else (event.at, "")
        printed = known.printed if known else ()
        sentence = _foreign(event.sentence or event.reason)
        step.looked = True
        step.waits[ref] = Wait(ref, since, event.reason, sentence, event.until, cause, printed)

    def _deed(self, step: StepCourse, ref: Ref, told: Told) -> None:
        """Count each object once: what was written stays so, though another try finds it so."""
        known = step.deeds.get(ref)
        if known is None or (known is Told.OBJECT_UNCHANGED and told is not known):
            if known is not None:
                self.deeds[known] -= 1
            self.deeds[told] += 1
            step.deeds[ref] = told


def _learnt(wait: Wait, event: Event) -> Wait:
    """What is known of an object that is waited for, with what is told of it."""
    if event.told is Told.GATE_EXPLAINED:
        return msgspec.structs.replace(wait, cause=_foreign(event.sentence))
    printed = (*wait.printed, event.sentence)[-MOST_PRINTED:]
    return msgspec.structs.replace(wait, printed=printed)


def _planned(step: Step) -> StepCourse:
    unit, name, refs = name_unit(step.unit, step.cluster), name_step(step), _refs(step)
    return StepCourse(step.id, unit, name, step.cluster, refs, step.rescues, step.unit)


def _unplanned(event: Event) -> StepCourse:
    """A step that was yielded when its turn came: only its events tell of it.

    One that nobody needed was there for a failure.
    """
    unit = "" if event.unit is None else name_unit(event.unit, event.cluster)
    name = name_spot(event.step.removeprefix(f"{unit}/"))
    is_rescue = event.reason == NOT_NEEDED
    cluster, owner = event.cluster, event.unit
    return StepCourse(event.step, unit, name, cluster, rescues=is_rescue, owner=owner)


def _refs(step: Step) -> tuple[Ref, ...]:
    return tuple(item.ref for item in items_of(step))
