"""Why an object failed, from what is known of it: rows with labels, `why`, `log` and `events`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.report.rollout.course import Course
from tidegate.report.rollout.evidence import (
    Comes,
    ContainerEnd,
    Evidence,
    KubeEvent,
    Lack,
    Maker,
    PodEnd,
)
from tidegate.report.rollout.names import count
from tidegate.report.rollout.rows import Row, Span, Style

WHY = "why"
MOST_NOTES = 6
MOST_LACKS = 5
INDENT = 11
"""Room for the longest label."""


def grounds(course: Course, found: Evidence, *, brief: bool = False) -> dict[str, list[str]]:
    """What is known of one object, by label, the most telling first.

    In `brief` pods speak for themselves: what they printed and their Events are left out.
    """
    lines = [found.unserved] if found.unserved else []
    lines += [_lack(course, lack) for lack in found.lacks[:MOST_LACKS]]
    told = {WHY: [*lines, *_ends(found.pods)]}
    if not (brief and found.pods):
        told |= {"log": _log(found.pods), "events": _notes(found.notes)}
    return {label: lines for label, lines in told.items() if lines}


def reasons(course: Course, found: Evidence, *, brief: bool = False) -> Iterator[Row]:
    """The same in rows."""
    for label, lines in grounds(course, found, brief=brief).items():
        yield from labelled(label, lines, Style.PLAIN if label == WHY else Style.FAINT)


def labelled(label: str, lines: Iterable[str], style: Style = Style.PLAIN) -> list[Row]:
    """Lines with a label before the first of them."""
    heads = [f"  {label}"]
    rows: list[Row] = []
    for line in lines:
        head = heads.pop() if heads else ""
        head = f"{head}  " if len(head) >= INDENT else head
        rows.append((Span(f"{head:{INDENT}}", Style.FAINT), Span(line, style)))
    return rows


def _lack(course: Course, lack: Lack) -> str:
    if not lack.makers:
        return f"{lack.ref} is not there, and nothing in the plan makes it"
    maker = lack.makers[0]
    who = "the plan brings it" if maker.ref == lack.ref else f"{maker.ref} would make it"
    if maker.ref != lack.ref and maker.comes is Comes.BEFORE:
        who = f"{maker.ref} has not made it"
    return f"{lack.ref} is not there; {who}, {_where(course, maker)}"


def _where(course: Course, maker: Maker) -> str:
    step = course.steps.get(maker.step)
    if maker.comes is Comes.SAME or step is None:
        return maker.comes
    return f"in {course.title(step)}, {maker.comes}"


def _ends(pods: Sequence[PodEnd]) -> list[str]:
    """How pods ended: each reason once, with the pods that give it."""
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
    return lines


def _ending(container: ContainerEnd) -> tuple[str, ...]:
    code = "" if container.exit_code is None else f", exit code {container.exit_code}"
    again = f", {count(container.restarts, 'restart')}" if container.restarts else ""
    head = f"container {container.name}: {container.reason}{code}{again}"
    return (head, container.message) if container.message else (head,)


def _log(pods: Sequence[PodEnd]) -> list[str]:
    """The last lines of the newest pod that printed any."""
    logs = (container.log for pod in pods for container in pod.containers)
    return list(next(filter(None, logs), ()))


def _notes(notes: Sequence[KubeEvent]) -> list[str]:
    """What was told last, each message once."""
    told: dict[str, int] = {}
    for note in notes:
        line = f"{note.reason}: {note.message}"
        told[line] = told.pop(line, 0) + note.times
    lines = [f"{line} ({times} times)" if times > 1 else line for line, times in told.items()]
    return lines[-MOST_NOTES:]
