"""A rollout is written down: a head that says what was to be done, and behind it every event.

    book = open_record(path)          # raises where the file cannot be written
    book.begin(plan, now)
    book.add(event)                   # each on a line of JSON, in the file at once
    book.close()

A rollout does not stop for its record: what could not be written is told behind it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import msgspec

from tidegate.errors import FileError, OutputError, Place, foreign, harmless
from tidegate.files import read_users_file
from tidegate.flows.discover import Family
from tidegate.flows.rollout import Audience
from tidegate.flows.session import Target, name_target
from tidegate.flows.units import unit_rows
from tidegate.model.event import Event
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.model.run import RUN, RUN_VERSION, RunHead, RunRecord
from tidegate.model.unit import UnitId
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.documents import EventOut, event_in, event_out
from tidegate.report.run_document import RunHeadOut, head_in, head_out

MADE_BY = "`tidegate sync --record FILE` writes one"
EXPLAINED = "rollout.explained"
"""The last line of a rollout that failed: all that is known of why."""
_MOST = 200
"""Bytes in which the first line of a record says what it is."""


def open_record(path: Path) -> RunBook:
    """The file, which can be written, and is as it was. Raises FileError.

    A file that is no record is somebody's, and is left alone.
    """
    is_new = not path.exists()
    try:
        stream = path.open("ab", buffering=0)
        is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError as error:
        problem = f"the run record cannot be written: {error.strerror}"
        raise FileError("file.record", problem, where=Place(str(path))) from None
    book = RunBook(path, stream, is_file=is_file, is_new=is_new)
    if is_file and not is_new and not _may_be_replaced(path):
        book.close()
        problem = "there is a file already, and it is no run record"
        hint = "give another name: a run record is written over what is there"
        raise FileError("file.record", problem, where=Place(str(path)), hint=hint)
    return book


def _may_be_replaced(path: Path) -> bool:
    with path.open("rb") as stream:
        begin = stream.read(_MOST)
    return not begin or begin.startswith(f'{{"kind":"{RUN}"'.encode())


class RunBook(msgspec.Struct):
    """An open record. `failure`: why it is not whole."""

    path: Path
    stream: IO[bytes]
    is_file: bool
    is_new: bool
    waves: dict[UnitId, int | None] = msgspec.field(default_factory=dict)
    target: tuple[str, ...] = ()
    is_simulated: bool = False
    failure: str = ""
    _is_begun: bool = False

    def introduce(self, families: Iterable[Family], target: Target) -> None:
        """Know the waves of units, and the clusters."""
        self.waves = {row.unit.id: row.wave for row in unit_rows(families)}
        self.target = tuple(name_target(target))
        self.is_simulated = target.simulation is not None

    def begin(self, plan: Plan, at: Ms) -> None:
        """What is to be done from now on; a newer plan takes the place of the one before."""
        if not self._is_begun and self.is_file:
            self.stream.truncate(0)
        self._is_begun = True
        head = msgspec.structs.replace(
            RunHead.of(plan, self.waves), at=at, target=self.target, is_simulated=self.is_simulated
        )
        self.add(head_out(head))

    def add(self, document: msgspec.Struct) -> None:
        """One line; behind a line that could not be written there is none."""
        if self.failure:
            return
        line = f"{harmless(msgspec.json.encode(document).decode())}\n".encode()
        try:
            while line:
                line = line[self.stream.write(line) :]
        except OSError as error:
            self.failure = error.strerror or "no reason was given"

    def close(self) -> None:
        """A file of ours in which nothing stands goes again."""
        self.stream.close()
        if self.is_new and self.is_file and not self._is_begun:
            self.path.unlink(missing_ok=True)

    def fault(self) -> OutputError | None:
        """What is wrong where it could not be written to its end."""
        if not self.failure:
            return None
        problem = f"the run record is not whole: {self.failure}"
        return OutputError("output.record", problem, where=Place(str(self.path)))


class RecordedAudience:
    """Somebody looks on, and what they see is written down."""

    def __init__(self, audience: Audience, book: RunBook) -> None:
        self._audience = audience
        self._book = book
        self._clock: Callable[[], Ms] = lambda: Ms(0)

    @property
    def course(self) -> Course:
        return self._audience.course

    def begin(self, plan: Plan, *, clock: Callable[[], Ms], stop: Callable[[str], None]) -> None:
        self._clock = clock
        self._audience.begin(plan, clock=clock, stop=stop)
        self._book.begin(plan, clock())

    def follow(self, plan: Plan) -> None:
        self._audience.follow(plan)
        self._book.begin(plan, self._clock())

    def emit(self, event: Event) -> None:
        self._audience.emit(event)
        self._book.add(event_out(event))


def read_run(path: Path) -> RunRecord:
    """Read what was recorded. Raises FileError.

    Of a rollout that was killed the last line may not be whole. Of several heads the last counts.
    """
    lines, where = read_users_file(path).splitlines(), Place(str(path))
    if not lines:
        raise FileError("file.record", "there is nothing in it", where=where, hint=MADE_BY)
    head = _head(lines[0], where)
    events: list[Event] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            told = msgspec.json.decode(line, type=_RunLine)
            if told.kind == RUN and not told.event:
                head = _head(line, where)
            elif told.event != EXPLAINED:
                units = {str(one.id): one.id for one in head.units}
                events.append(event_in(msgspec.json.decode(line, type=EventOut), units))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines):
                return RunRecord(head, tuple(events), cut=1)
            problem = f"this line is no event: {foreign(str(error))}"
            where = Place(str(path), line=number)
            raise FileError("file.record", problem, where=where) from None
    return RunRecord(head, tuple(events))


class _RunLine(msgspec.Struct):
    event: str = ""
    kind: str = ""


class _RunOpening(msgspec.Struct):
    kind: str = ""
    version: int = 0


def _head(line: bytes, where: Place) -> RunHead:
    try:
        said = msgspec.json.decode(line, type=_RunOpening)
        if said.kind == RUN and said.version == RUN_VERSION:
            return head_in(msgspec.json.decode(line, type=RunHeadOut))
        why = (
            f"it has version {said.version}, and {RUN_VERSION} is read here"
            if said.kind == RUN
            else f"its kind is `{foreign(said.kind)}`"
        )
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = foreign(str(error))
    except KeyError as error:
        why = f"it has no unit `{foreign(str(error.args[0]))}`, and a step of it"
    problem = f"this is not a run record: {why}"
    raise FileError("file.record", problem, where=where, hint=MADE_BY)
