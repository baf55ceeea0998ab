"""Simulated rollouts side by side: when each step was applied and when its gate opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidegate.model.event import Event, Told
from tidegate.model.moment import SECOND, Ms
from tidegate.model.plan import Plan
from tidegate.report.plan import step_name

NEVER = "-"
ENDS = {
    Told.STEP_PASSED: "",
    Told.STEP_FAILED: "failed",
    Told.STEP_SKIPPED: "skipped",
    Told.STEP_SUPERSEDED: "superseded",
}


@dataclass(slots=True)
class Course:
    """How one step went."""

    applied: Ms | None = None
    ended: Ms | None = None
    how: str = ""


def courses(events: Iterable[Event]) -> dict[str, Course]:
    """The last course of each step; times count from the first event."""
    found: dict[str, Course] = {}
    start: Ms | None = None
    for event in events:
        start = event.at if start is None else start
        course = found.setdefault(event.step, Course()) if event.step else Course()
        at = Ms(event.at - start)
        if event.told is Told.STEP_APPLYING:
            course.applied = at
        elif event.told in ENDS:
            course.ended, course.how = at, ENDS[event.told]
    return found


def side_by_side(plan: Plan, runs: Sequence[tuple[str, Sequence[Event]]]) -> Iterator[str]:
    """A table with a line for each step and two columns for each engine."""
    told = [(name, courses(events)) for name, events in runs]
    names = [step_name(step, several=len(plan.units) > 1) for step in plan.steps]
    width = max([len("step"), *map(len, names)])
    head = "  ".join(f"{name + ' applies':>18}  {'opens':>14}" for name, _ in told)
    yield f"{'step':{width}}  {head}".rstrip()
    for name, step in zip(names, plan.steps, strict=True):
        cells = "  ".join(_cell(found.get(step.id, Course())) for _, found in told)
        yield f"{name:{width}}  {cells}".rstrip()
    yield ""
    for name, events in runs:
        yield f"{name}: {_end(events)}"


def _cell(course: Course) -> str:
    opens = f"{course.how} {seconds(course.ended)}" if course.how == "failed" else course.how
    return f"{seconds(course.applied):>18}  {opens or seconds(course.ended):>14}"


def seconds(moment: Ms | None) -> str:
    return NEVER if moment is None else f"{moment / SECOND:.1f}s"


def _end(events: Sequence[Event]) -> str:
    """How it ended, and why if it did not pass."""
    last = events[-1]
    lasted = seconds(Ms(last.at - events[0].at))
    failed = [event.sentence for event in events if event.told is Told.STEP_FAILED]
    if last.reason == "invalid":
        refused = (event for event in events if event.told is Told.OBJECT_REFUSED)
        failed = [f"{event.ref}: {event.sentence}" for event in refused]
    why = f": {failed[0]}" if failed else ""
    return f"{last.reason} after {lasted}{why}"
