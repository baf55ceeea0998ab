"""A rollout as lines with times, for pipes and for whoever reads a log the next day.

A line tells what a person needs to know: not every event, and no wait that is over in a moment.
A gate that waits says so once it has held, again when its reason changes, and now and then in
between, so that nobody takes a long wait for a hang.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.errors import escaped, foreign
from tidegate.model.event import FORGIVEN, Event, StepState, Told
from tidegate.model.moment import MINUTE, SECOND, Ms, format_moment
from tidegate.model.objects import Ref
from tidegate.report.rollout.course import STATES, Course, StepCourse, Wait, is_asking
from tidegate.report.rollout.names import brief, count, fold, limit, listing, seconds
from tidegate.report.rollout.summary import headline

HOLDS = Ms(1 * SECOND)
"""A wait that is over before is not told."""
AGAIN = Ms(15 * SECOND)
"""How soon a wait is told again whose reason has changed."""
ALIVE = Ms(1 * MINUTE)
"""How soon it is told again though nothing has changed."""
APPROVAL = "Approval"
"""The reason of a step that waits until somebody approves."""
MOST_WAITS = 3
MOST_NAMED = 6
MOST_STEPS = 3


class _Said(msgspec.Struct):
    """What was said last of a step at work, and when there may be more to say."""

    due: Ms
    last: Ms | None = None
    known: dict[Ref, str] = msgspec.field(default_factory=dict)
    """Why each object is waited for, as far as it was said."""

    def news(self, step: StepCourse) -> list[Wait]:
        """The waits to be told: all after a long silence, else those with another reason."""
        waits = list(step.waits.values())
        if self.last is None or self.due >= self.last + ALIVE:
            return waits
        return [wait for wait in waits if self.known.get(wait.ref) != wait.sentence]

    def hurry(self, now: Ms) -> None:
        """There is news: tell it when it has held, and not too soon after the last."""
        soon = Ms(now + HOLDS)
        self.due = min(self.due, soon if self.last is None else max(soon, Ms(self.last + AGAIN)))


class Lines:
    """Takes events and moments in order, gives lines."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self._said: dict[str, _Said] = {}
        self._folded: list[StepCourse] = []
        self._width = 0

    def take(self, event: Event) -> list[str]:
        """What there is to say at an event; what was due before comes first."""
        lines = [] if self._is_alike(event) else self._unfold()
        lines += self.pass_time(event.at)
        self.course.take(event)
        step = self.course.steps.get(event.step)
        if step is None:
            return [*lines, *self._rollout(event)]
        if event.told is Told.LOG_PRINTED:
            return [*lines, self._line(event.at, step, f"{event.ref} | {escaped(event.sentence)}")]
        lines += self._step(step, event)
        self._watch(step, event)
        return lines

    def pass_time(self, now: Ms) -> list[str]:
        """What there is to say of steps at work, up to a moment."""
        lines = self._unfold() if self._folded and now > self._folded[0].since else []
        while self._said:
            name, said = min(self._said.items(), key=lambda pair: pair[1].due)
            if said.due > now:
                break
            lines += self._speak(self.course.steps[name], said)
        return lines

    def _speak(self, step: StepCourse, said: _Said) -> list[str]:
        at = said.due
        news = said.news(step)
        what = list(_waiting(news, self.course.start) if step.waits else _at_work(step, at))
        if what or said.last is None:
            said.last = at
        alive = Ms(said.last + ALIVE)
        said.due = alive if alive > at else Ms(at + ALIVE)
        said.known = {wait.ref: wait.sentence for wait in step.waits.values()}
        return [self._line(at, step, one) for one in what]

    def _watch(self, step: StepCourse, event: Event) -> None:
        """Decide when there may be something to say of a step next."""
        if step.id not in self.course.active or step.state is StepState.WAITING:
            self._said.pop(step.id, None)
            return
        said = self._said.get(step.id)
        if said is None or event.told in {Told.STEP_CHECKING, Told.STEP_GATING}:
            self._said[step.id] = said = _Said(Ms(event.at + AGAIN))
        if event.told is Told.GATE_WAITING:
            said.hurry(event.at)

    def _step(self, step: StepCourse, event: Event) -> Iterator[str]:
        match event.told:
            case Told.STEP_GATING if Told.OBJECT_WRITTEN in step.deeds.values():
                yield self._line(event.at, step, _applied(step))
            case Told.STEP_PASSED:
                forgiven = foreign(event.sentence) if event.reason == FORGIVEN else ""
                yield self._line(event.at, step, forgiven or _passed(step))
            case Told.STEP_FAILED:
                yield self._line(event.at, step, f"failed: {step.sentence or step.reason}")
            case Told.STEP_SKIPPED | Told.STEP_SUPERSEDED if not step.is_idle:
                self._folded.append(step)
            case Told.RETRY_PLANNED:
                pause = limit(event.until - event.at)
                yield self._line(event.at, step, f"tries again in {pause}: {step.sentence}")
            case Told.STEP_WAITING if event.until or is_asking(event):
                yield self._line(event.at, step, _held(event))
            case told if told in REMARKS and not self._is_untold(event):
                yield self._line(event.at, step, f"{REMARKS[told]} {event.ref}: {_why(event)}")
            case _:
                return

    def _is_untold(self, event: Event) -> bool:
        """What is known to be wrong before anything begins is told together, by its places.

        That a cause is gone is not told: soon enough the gate opens, or there is another one.
        """
        if event.told is Told.GATE_EXPLAINED:
            return not event.sentence
        return event.told is Told.OBJECT_REFUSED and self.course.is_fresh

    def _rollout(self, event: Event) -> Iterator[str]:
        if event.told is Told.ROLLOUT_BEGUN:
            steps = self.course.counted
            objects = sum(step.size for step in steps)
            if steps:
                told = f"begins: {count(len(steps), 'step')}, {count(objects, 'object')}"
                yield self._line(event.at, None, told)
        elif event.told is Told.UNIT_WAITING:
            yield self._line(event.at, None, f"waits for unit {event.unit}: {_why(event)}")
        elif event.told is Told.UNIT_TAKEN:
            yield self._line(event.at, None, f"goes on with unit {event.unit}")
        elif event.told is Told.ROLLOUT_SUPERSEDED:
            yield self._line(event.at, None, "goes on with a newer revision")
        elif event.told is Told.ROLLOUT_ENDED:
            yield self._line(event.at, None, headline(self.course))

    def _is_alike(self, event: Event) -> bool:
        """Whether an event tells the same of another step as the ones before it."""
        return bool(self._folded) and STATES.get(event.told) is self._folded[0].state

    def _unfold(self) -> list[str]:
        """Steps that are left out, in one line."""
        if not self._folded:
            return []
        steps, self._folded = self._folded, []
        names = fold(map(self.course.title, steps), len(steps), MOST_STEPS)
        objects = sum(step.size for step in steps)
        word = "given up" if steps[0].state is StepState.SUPERSEDED else "skipped"
        told = f"{word} {names} ({count(objects, 'object')})"
        return [self._line(steps[0].since, None, told)]

    def _line(self, at: Ms, step: StepCourse | None, told: str) -> str:
        name = "rollout" if step is None else self.course.title(step)
        if not self._width:
            titles = [len(self.course.title(one)) for one in self.course.steps.values()]
            self._width = max([len("rollout"), *titles])
        self._width = max(self._width, len(name))
        return f"{(at - self.course.start) / SECOND:8.1f}s  {name:{self._width}}  {told}"


REMARKS = {
    Told.OBJECT_REFUSED: "refused",
    Told.OBJECT_TAKEN: "takes over",
    Told.OBJECT_DRIFTED: "drifted, and left so:",
    Told.GATE_UNPROVEN: "not proven:",
    Told.GATE_EXPLAINED: "not ready:",
}


def _held(event: Event) -> str:
    """Why a step waits that no edge holds: until a moment, or for somebody."""
    if event.until:
        return f"held until {format_moment(event.until)}: {_why(event)}"
    hint = f": `tidegate approve {event.unit}`" if event.reason == APPROVAL else ""
    return f"waits: {_why(event)}{hint}"


def _why(event: Event) -> str:
    return foreign(event.sentence or event.reason)


def _passed(step: StepCourse) -> str:
    """What is deleted is told here: until now it was on its way."""
    spent = f"passed in {seconds(step.spent(step.since))}"
    gone = sorted(ref for ref, told in step.deeds.items() if told is Told.OBJECT_PRUNED)
    if gone:
        return f"{spent}; deleted {count(len(gone), 'object')}: {listing(gone, MOST_NAMED)}"
    has_changed = any(told is not Told.OBJECT_UNCHANGED for told in step.deeds.values())
    return spent if has_changed else f"{spent}, {count(step.size, 'object')} unchanged"


def _applied(step: StepCourse) -> str:
    """What a step has written, and what it found as it should be."""
    parts = []
    for deed, word in ((Told.OBJECT_WRITTEN, "applied"), (Told.OBJECT_UNCHANGED, "unchanged")):
        refs = [ref for ref, told in step.deeds.items() if told is deed]
        if refs:
            parts.append(f"{word} {count(len(refs), 'object')}: {listing(refs, MOST_NAMED)}")
    return "; ".join(parts)


def _at_work(step: StepCourse, now: Ms) -> Iterator[str]:
    spent = seconds(step.spent(now))
    if step.state is StepState.APPLYING:
        yield f"applies, {len(step.deeds):,} of {count(step.size, 'object')} after {spent}"
    elif step.state is StepState.CHECKING:
        yield f"looks at {count(step.size, 'object')}, for {spent} now"


def _waiting(waits: list[Wait], start: Ms) -> Iterator[str]:
    yield from (_waits(wait, start) for wait in waits[:MOST_WAITS])
    if len(waits) > MOST_WAITS:
        yield f"waits for {count(len(waits) - MOST_WAITS, 'object')} more"


def _waits(wait: Wait, start: Ms) -> str:
    since = f"since {seconds(wait.since - start)}"
    until = f", at most until {seconds(wait.until - start)}" if wait.until else ""
    return f"waits for {wait.ref}: {brief(wait.sentence)} ({since}{until})"
