"""Why a rollout failed: what, why, what is there and what is not, and what to type next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tidegate.model.event import StepState
from tidegate.model.objects import Ref
from tidegate.report.rollout.course import Course, Remark, StepCourse
from tidegate.report.rollout.evidence import Ended, Evidence, Note, PodEnd
from tidegate.report.rollout.names import count, listing, seconds
from tidegate.report.rollout.rows import UNICODE, Marks, Row, Span, Style
from tidegate.report.rollout.summary import NO_COMMANDS, Commands, deeds_of

MOST_FAILURES = 3
"""How many are told in full."""
MOST_NOTES = 6
MOST_NAMED = 8
MOST_REFUSED = 20
INDENT = 11
"""Room for the longest label."""


def failing_refs(course: Course) -> list[Ref]:
    """The objects to collect evidence of, each once."""
    named = [_culprit(step) for step in course.failures()[:MOST_FAILURES]]
    return list(dict.fromkeys(ref for ref in named if ref is not None))


def explain_failure(
    course: Course,
    evidence: Iterable[Evidence] = (),
    *,
    commands: Commands = NO_COMMANDS,
    marks: Marks = UNICODE,
) -> list[Row]:
    """The rows of the explanation."""
    known = {one.ref: one for one in evidence}
    failures = course.failures()
    rows: list[Row] = []
    for step in failures[:MOST_FAILURES]:
        rows += _failure(course, step, known, marks)
    if len(failures) > MOST_FAILURES:
        names = ", ".join(map(course.title, failures[MOST_FAILURES:]))
        rows.append(_labelled("also", [f"failed: {names}"], Style.BAD)[0])
    rows += _refusals(course, marks)
    rows += _left(course)
    rows += _next(course, commands)
    return rows


def _failure(
    course: Course, step: StepCourse, known: Mapping[Ref, Evidence], marks: Marks
) -> Iterator[Row]:
    spent = seconds(step.since - course.start)
    head = Span(f"{marks.failed} {course.title(step)} failed", Style.BAD)
    yield (head, Span(f" after {spent}: {step.sentence or step.reason}"))
    culprit = _culprit(step)
    found = known.get(culprit) if culprit else None
    if found is not None:
        yield from _why(found.pods)
        yield from _logs(found.pods)
        yield from _notes(found.notes)


def _culprit(step: StepCourse) -> Ref | None:
    """The object that a failure speaks of: its sentence begins with its name."""
    refs = {*step.refs, *step.deeds, *step.waits}
    named = [ref for ref in refs if _begins_with(step.sentence, str(ref))]
    return max(named, key=lambda ref: len(str(ref)), default=None)


def _begins_with(sentence: str, name: str) -> bool:
    return sentence.startswith(name) and sentence[len(name) : len(name) + 1] in {"", ":", " "}


def _why(pods: Sequence[PodEnd]) -> Iterator[Row]:
    """Each reason once, with the pods that give it."""
    told: dict[tuple[str, ...], list[str]] = {}
    for pod in pods:
        for container in pod.containers:
            told.setdefault(_ending(container), []).append(f"{pod.ref}")
        if not pod.containers:
            parts = (pod.phase, pod.reason, pod.message)
            told.setdefault(tuple(part for part in parts if part), []).append(f"{pod.ref}")
    lines: list[str] = []
    for reason, names in told.items():
        alike = f" (and {count(len(names) - 1, 'pod')} more)" if len(names) > 1 else ""
        lines += [f"{names[0]}{alike}: {reason[0] if reason else 'not ready'}", *reason[1:]]
    yield from _labelled("why", lines)


def _ending(container: Ended) -> tuple[str, ...]:
    code = "" if container.exit_code is None else f", exit code {container.exit_code}"
    again = f", {count(container.restarts, 'restart')}" if container.restarts else ""
    head = f"container {container.name}: {container.reason}{code}{again}"
    return (head, container.message) if container.message else (head,)


def _logs(pods: Sequence[PodEnd]) -> Iterator[Row]:
    """The last lines of the newest pod that printed any."""
    for pod in pods:
        for container in pod.containers:
            if container.log:
                yield from _labelled("log", container.log, Style.FAINT)
                return


def _notes(notes: Sequence[Note]) -> Iterator[Row]:
    """What was told last, each message once."""
    told: dict[str, int] = {}
    for note in notes:
        line = f"{note.reason}: {note.message}"
        told[line] = told.pop(line, 0) + note.times
    lines = [f"{line} ({times} times)" if times > 1 else line for line, times in told.items()]
    yield from _labelled("events", lines[-MOST_NOTES:], Style.FAINT)


def _refusals(course: Course, marks: Marks) -> Iterator[Row]:
    """What the cluster would not take, where that ended the rollout before its first write."""
    if course.failures():
        return
    head = Span(f"{marks.failed} nothing was written: ", Style.BAD)
    refused = course.refused
    if not refused:
        told = course.sentence or "the rollout ended before its first step"
        yield (head, Span(told))
        return
    yield (head, Span(f"the cluster would refuse {count(len(refused), 'object')}"))
    for remark in refused[:MOST_REFUSED]:
        yield from _labelled(_place(course, remark), [f"{remark.ref}: {remark.sentence}"])
    if len(refused) > MOST_REFUSED:
        yield from _labelled("", [f"and {len(refused) - MOST_REFUSED:,} more"])


def _place(course: Course, remark: Remark) -> str:
    step = course.steps.get(remark.step)
    return course.title(step) if step else remark.step


def _left(course: Course) -> Iterator[Row]:
    """What is in the cluster now, and what is not."""
    applied = [ref for step in course.steps.values() for ref in step.deeds]
    if applied:
        told = [f"{count(len(applied), 'object')} ({deeds_of(course)})"]
        yield from _labelled("applied", [*told, listing(applied, MOST_NAMED)])
    waiting = [
        f"{course.title(step)}: {listing(missing, MOST_NAMED)}"
        for step in course.counted
        if step.state is not StepState.PASSED and (missing := _missing(step))
    ]
    if waiting:
        yield from _labelled("not yet", waiting[:MOST_NAMED])
        if len(waiting) > MOST_NAMED:
            more = count(len(waiting) - MOST_NAMED, "step")
            yield from _labelled("", [f"and {more} more"])


def _missing(step: StepCourse) -> list[Ref]:
    return [ref for ref in step.refs if ref not in step.deeds]


def _next(course: Course, commands: Commands) -> Iterator[Row]:
    lines: list[str] = []
    culprits = failing_refs(course)
    if commands.kubectl and culprits:
        ref = culprits[0]
        place = f" -n {ref.namespace}" if ref.namespace else ""
        lines.append(f"{commands.kubectl}{place} describe {ref.kind.name.lower()} {ref.name}")
    if commands.again:
        lines.append(commands.again + ("   # goes on where this ended" if commands.resumes else ""))
    yield from _labelled("next", lines, Style.STRONG)


def _labelled(label: str, lines: Iterable[str], style: Style = Style.PLAIN) -> list[Row]:
    """Lines with a label before the first of them."""
    heads = [f"  {label}"]
    rows: list[Row] = []
    for line in lines:
        head = heads.pop() if heads else ""
        rows.append((Span(f"{head:{INDENT}}", Style.FAINT), Span(line, style)))
    return rows
