"""Why a rollout failed: what, why, what is there and what is not, and what to type next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.model.event import StepState
from tidegate.model.objects import Ref, Spot
from tidegate.report.rollout.course import Course, Remark, StepCourse, Wait
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.names import brief, count, listing, seconds
from tidegate.report.rollout.reasons import labelled, reasons
from tidegate.report.rollout.rows import UNICODE, Marks, Row, Span, Style
from tidegate.report.rollout.summary import NO_COMMANDS, Commands, deeds_of

MOST_FAILURES = 3
"""How many are told in full."""
MOST_NAMED = 8
MOST_REFUSED = 20


def failing_spots(course: Course) -> list[Spot]:
    """The objects to collect evidence of, each once: also of what would be tried again.

    Where time is over, so are those that gates still wait for.
    """
    failing = course.failures() or course.struggling()
    if course.is_late and not failing:
        return [Spot(step.cluster, wait.ref) for step, wait in _awaited(course)]
    named = [_culprit(step) for step in failing[:MOST_FAILURES]]
    return list(dict.fromkeys(spot for spot in named if spot is not None))


def refused_spots(course: Course) -> list[Spot]:
    """The objects of which it is told that the cluster would refuse them, each once."""
    named = (_refused(course, remark) for remark in course.refused[:MOST_REFUSED])
    return list(dict.fromkeys(spot for spot in named if spot is not None))


def _refused(course: Course, remark: Remark) -> Spot | None:
    step = course.steps.get(remark.step)
    return Spot(step.cluster if step else "", remark.ref) if remark.ref else None


def explain_failure(
    course: Course,
    evidence: Iterable[Evidence] = (),
    *,
    commands: Commands = NO_COMMANDS,
    marks: Marks = UNICODE,
) -> list[Row]:
    """The rows of the explanation."""
    known = {Spot(one.cluster, one.ref): one for one in evidence}
    failures = course.failures()
    rows: list[Row] = []
    for step in failures[:MOST_FAILURES]:
        rows += _failure(course, step, known, marks)
    if len(failures) > MOST_FAILURES:
        names = ", ".join(map(course.title, failures[MOST_FAILURES:]))
        rows.append(labelled("also", [f"failed: {names}"], Style.BAD)[0])
    rows += _refusals(course, marks)
    rows += _left(course)
    rows += _next(course, commands)
    return rows


def explain_lateness(course: Course, evidence: Iterable[Evidence]) -> list[Row]:
    """What gates still waited for when time was over, and why."""
    known = {Spot(one.cluster, one.ref): one for one in evidence}
    rows: list[Row] = []
    for step, wait in _awaited(course):
        head = f"  {course.title(step)} still waits for {wait.ref}: "
        rows.append((Span(head), Span(brief(wait.sentence))))
        found = known.get(Spot(step.cluster, wait.ref))
        rows += reasons(course, found) if found else ()
    return rows


def _awaited(course: Course) -> list[tuple[StepCourse, Wait]]:
    """What gates wait for, as far as it is told in full."""
    waits = [(step, wait) for step in course.active.values() for wait in step.waits.values()]
    return waits[:MOST_FAILURES]


def _failure(
    course: Course, step: StepCourse, known: Mapping[Spot, Evidence], marks: Marks
) -> Iterator[Row]:
    spent = seconds(step.since - course.start)
    head = Span(f"{marks.failed} {course.title(step)} failed", Style.BAD)
    yield (head, Span(f" after {spent}: {step.sentence or step.reason}"))
    culprit = _culprit(step)
    found = known.get(culprit) if culprit else None
    if found is not None:
        yield from reasons(course, found)


def _culprit(step: StepCourse) -> Spot | None:
    """The object that a failure speaks of: its sentence begins with its name."""
    refs = {*step.refs, *step.deeds, *step.waits}
    told = step.trouble or step.sentence
    named = [ref for ref in refs if _begins_with(told, str(ref))]
    culprit = max(named, key=lambda ref: len(str(ref)), default=None)
    return None if culprit is None else Spot(step.cluster, culprit)


def _begins_with(sentence: str, name: str) -> bool:
    return sentence.startswith(name) and sentence[len(name) : len(name) + 1] in {"", ":", " "}


def _refusals(course: Course, marks: Marks) -> Iterator[Row]:
    """That the cluster would not take it, where that ended the rollout, or kept a part from it.

    What is wrong with which object is a finding for each.
    """
    if course.failures():
        return
    much = "not all" if any(step.deeds for step in course.steps.values()) else "nothing"
    head = Span(f"{marks.failed} {much} was written: ", Style.BAD)
    if not course.refused:
        told = course.sentence or "the rollout ended before its first step"
        yield (head, Span(told))
        return
    yield (head, Span(refused_in_short(course)))


def refused_in_short(course: Course) -> str:
    """How many objects the cluster would not take."""
    return f"the cluster would refuse {count(len({one.ref for one in course.refused}), 'object')}"


def _left(course: Course) -> Iterator[Row]:
    """What is in the cluster now, and what is not."""
    applied = [ref for step in course.steps.values() for ref in step.deeds]
    if applied:
        told = [f"{count(len(applied), 'object')} ({deeds_of(course)})"]
        yield from labelled("applied", [*told, listing(applied, MOST_NAMED)])
    waiting = [
        f"{course.title(step)}: {listing(missing, MOST_NAMED)}"
        for step in course.counted
        if step.state is not StepState.PASSED and (missing := _missing(step))
    ]
    if waiting:
        yield from labelled("not yet", waiting[:MOST_NAMED])
        if len(waiting) > MOST_NAMED:
            more = count(len(waiting) - MOST_NAMED, "step")
            yield from labelled("", [f"and {more} more"])


def _missing(step: StepCourse) -> list[Ref]:
    return [ref for ref in step.refs if ref not in step.deeds]


def _next(course: Course, commands: Commands) -> Iterator[Row]:
    lines: list[str] = []
    culprits = failing_spots(course)
    if commands.kubectl and culprits:
        ref = culprits[0].ref
        place = f" -n {ref.namespace}" if ref.namespace else ""
        lines.append(f"{commands.kubectl}{place} describe {ref.kind.name.lower()} {ref.name}")
    if commands.again:
        goes_on = commands.resumes and course.deeds.total() > 0
        lines.append(commands.again + ("   # goes on where this ended" if goes_on else ""))
    yield from labelled("next", lines, Style.STRONG)
