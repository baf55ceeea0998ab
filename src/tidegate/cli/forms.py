"""The forms in which a rollout is shown: a picture, lines, or events as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from tidegate.cli.terminal import Ability, Outlet, Terminal
from tidegate.cli.window import Size
from tidegate.errors import escaped, harmless
from tidegate.model.event import Event
from tidegate.model.moment import Ms
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.documents import event_out
from tidegate.report.rollout.ending import has_failed, is_explained, rollout_ending
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.failure import explain_failure, explain_lateness
from tidegate.report.rollout.lines import Lines
from tidegate.report.rollout.live import LiveView, final_rows, frame
from tidegate.report.rollout.rows import Marks, Row, wrap
from tidegate.report.rollout.summary import STOPPED, Commands, go_on, summarize


class Form(Protocol):
    """What a screen asks of a form."""

    def take(self, event: Event) -> None: ...
    def look(self, now: Ms) -> None: ...
    def say(self, notice: str) -> None: ...
    def end(self, evidence: Iterable[Evidence], commands: Commands) -> None: ...


class Records:
    """Events, each on a line of JSON."""

    def __init__(self, course: Course, outlet: Outlet) -> None:
        self._course = course
        self._outlet = outlet

    def take(self, event: Event) -> None:
        self._course.take(event)
        self._outlet.write(f"{harmless(msgspec.json.encode(event_out(event)).decode())}\n")

    def look(self, now: Ms) -> None:
        """Time alone is no event."""

    def say(self, notice: str) -> None:
        """Nothing but events."""

    def end(self, evidence: Iterable[Evidence], commands: Commands) -> None:  # noqa: ARG002 - theirs
        """Of what failed, all that is known: why, its log, its Events."""
        if not is_explained(self._course):
            return
        document = rollout_ending(self._course, evidence)
        self._outlet.write(f"{harmless(msgspec.json.encode(document).decode())}\n")


class Log:
    """Lines with times."""

    def __init__(self, course: Course, outlet: Outlet, marks: Marks) -> None:
        self._lines = Lines(course)
        self._outlet = outlet
        self._marks = marks

    def take(self, event: Event) -> None:
        self._write(self._lines.take(event))

    def look(self, now: Ms) -> None:
        self._write(self._lines.pass_time(now))

    def say(self, notice: str) -> None:
        self._write([notice])

    def end(self, evidence: Iterable[Evidence], commands: Commands) -> None:
        course = self._lines.course
        self._outlet.write_rows(ending(course, evidence, commands, self._marks))

    def _write(self, lines: list[str]) -> None:
        if lines:
            self._outlet.write("".join(f"{escaped(line)}\n" for line in lines))


class Picture:
    """A picture that is drawn anew while the rollout runs."""

    def __init__(self, course: Course, outlet: Outlet, ability: Ability, size: Size) -> None:
        self.terminal = Terminal(outlet, ability, size)
        self._course = course
        self._outlet = outlet
        self._ability = ability
        self._size = size
        self._view = LiveView(marks=ability.marks)

    def name(self, title: str) -> None:
        self._view = msgspec.structs.replace(self._view, title=title)

    def take(self, event: Event) -> None:
        self._course.take(event)

    def look(self, now: Ms) -> None:
        """Draw; the picture never gets lower while the terminal stays as it is."""
        columns, lines = self._size()
        view = self._view
        is_same = (view.width, view.height) == (columns - 1, lines - 1)
        self._view = view = msgspec.structs.replace(
            view,
            width=max(1, columns - 1),
            height=max(1, lines - 1),
            beat=view.beat + 1,
            least=view.least if is_same else 0,
        )
        rows = frame(self._course, view, now)
        self._view = msgspec.structs.replace(view, least=len(rows))
        self.terminal.draw(rows)

    def say(self, notice: str) -> None:
        self._view = msgspec.structs.replace(self._view, notice=notice)

    def end(self, evidence: Iterable[Evidence], commands: Commands) -> None:
        """The folded picture stays, and below it what there is to say."""
        columns, lines = self._size()
        view = msgspec.structs.replace(self._view, width=columns - 1, height=lines - 1)
        course, marks = self._course, self._ability.marks
        self.terminal.draw(final_rows(course, view))
        self.terminal.forget()
        rows = [] if has_failed(course) else summarize(course, marks=marks)
        rows += ending(course, evidence, commands, marks)
        wrapped = [part for row in rows for part in wrap(row, columns - 1)]
        self._outlet.write_rows(wrapped, colours=self._ability.colours)


def ending(
    course: Course, evidence: Iterable[Evidence], commands: Commands, marks: Marks
) -> list[Row]:
    """What is to be said after the end, besides that it came."""
    if course.result == STOPPED:
        late = explain_lateness(course, evidence) if course.is_late else []
        return [*late, *go_on(course, commands)]
    if has_failed(course):
        return explain_failure(course, evidence, commands=commands, marks=marks)
    return []
