"""How a rollout ended: in how long, what it did, and what is left to say."""

from __future__ import annotations

import msgspec

from tidegate.model.event import StepState, Told
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.names import count, seconds
from tidegate.report.rollout.rows import UNICODE, Marks, Row, Span, Style

PASSED, STOPPED, INVALID = "passed", "stopped", "invalid"
MOST_UNPROVEN = 5
DEEDS = (
    (Told.OBJECT_WRITTEN, "written"),
    (Told.OBJECT_UNCHANGED, "unchanged"),
    (Told.OBJECT_PRUNED, "deleted"),
)


class Commands(msgspec.Struct, frozen=True, kw_only=True):
    """What can be typed next.

    `again` is the same command; where the cluster is still there, it `resumes`. `kubectl` reaches
    the same cluster.
    """

    again: str = ""
    kubectl: str = ""
    resumes: bool = True


NO_COMMANDS = Commands()


def headline(course: Course) -> str:
    """How it ended, in one line: `passed in 120.0s: 10 written`."""
    spent = seconds(course.now - course.start)
    steps = course.counted
    if course.result == STOPPED:
        passed = sum(step.state is StepState.PASSED for step in steps)
        why = f" ({course.sentence})" if course.sentence else ""
        return f"stopped after {spent}{why}: {passed:,} of {count(len(steps), 'step')} passed"
    if course.result == INVALID:
        return "ended before the first write"
    if course.result != PASSED:
        return f"{course.result} after {spent}"
    if has_changed(course):
        return f"passed in {spent}: {deeds_of(course)}"
    objects = course.deeds[Told.OBJECT_UNCHANGED] or sum(step.size for step in steps)
    return f"nothing changed: looked at {count(objects, 'object')} in {spent}, wrote nothing"


def summarize(course: Course, *, marks: Marks = UNICODE) -> list[Row]:
    """The end of a rollout; a failure has more to say than this."""
    mark, style = _mark(course, marks)
    return [(Span(f"{mark} ", style), Span(headline(course), style)), *_unproven(course)]


def go_on(course: Course, commands: Commands) -> list[Row]:
    """What a rollout that was stopped leaves, and how to take it up again."""
    applied = sum(course.deeds.values())
    objects = sum(step.size for step in course.counted)
    end = "they stay as they are" if commands.resumes else "they are gone with their cluster"
    told = f"  applied {applied:,} of {count(objects, 'object')}; {end}"
    again = Span(f"  {_again(commands)}", Style.STRONG)
    return [(Span(told),), *([(again,)] if commands.again else [])]


def cut_off(commands: Commands) -> str:
    """What is said of a rollout that was stopped at once: nobody has looked at what it left."""
    again = f"; {_again(commands)}" if commands.again else ""
    return f"stopped at once: what was under way is not finished{again}"


def _again(commands: Commands) -> str:
    word = "go on" if commands.resumes else "begin again"
    return f"{word} with:  {commands.again}"


def deeds_of(course: Course) -> str:
    """`3 written, 7 unchanged`; nothing that did not happen."""
    told = (f"{course.deeds[deed]:,} {word}" for deed, word in DEEDS if course.deeds[deed])
    return ", ".join(told)


def has_changed(course: Course) -> bool:
    return any(course.deeds[deed] for deed in (Told.OBJECT_WRITTEN, Told.OBJECT_PRUNED))


def _mark(course: Course, marks: Marks) -> tuple[str, Style]:
    if course.result == PASSED:
        return marks.passed, Style.GOOD
    return (marks.skipped, Style.ODD) if course.result == STOPPED else (marks.failed, Style.BAD)


def _unproven(course: Course) -> list[Row]:
    rows: list[Row] = [
        (Span("  not proven: ", Style.ODD), Span(f"{remark.ref}: {remark.sentence}"))
        for remark in course.unproven[:MOST_UNPROVEN]
    ]
    more = len(course.unproven) - len(rows)
    if more > 0:
        rows.append((Span(f"  not proven: {count(more, 'gate')} more", Style.ODD),))
    return rows
