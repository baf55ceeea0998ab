"""The run record of a rollout: a head with the plan, then every event.

    recorder = open_record(path)      # raises if the file cannot be written
    recorder.write_head(plan, now)
    recorder.add(event)               # one line of JSON each, written at once
    recorder.close()

A rollout does not stop if its record cannot be written; the error is reported at the end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import msgspec

from tidegate.clusters.session import ClusterTargets, describe_targets
from tidegate.errors import FileError, Location, OutputError, sanitize, sanitize_document
from tidegate.files import read_user_file
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.documents import (
    EventDocument,
    RunHeadDocument,
    event_document,
    event_from_document,
    run_head_document,
    run_head_from_document,
)
from tidegate.model.rollouts.event import Event
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.rollouts.run import RUN_KIND, RUN_VERSION, RunHead, RunRecord
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.rollout.run import RolloutObserver
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.selection import unit_rows

RECORD_HINT = "write a run record with `tidegate sync --record FILE`"
EXPLAINED_EVENT = "rollout.explained"
"""Type of the last line of a failed rollout: the evidence about the failure."""
_PREFIX_SIZE = 200
"""Bytes in which the first line of a record shows its kind."""


def open_record(path: Path) -> RunRecorder:
    """Open a file for a run record, unchanged until the first write. Raises FileError.

    A file that is not a run record is not overwritten.
    """
    is_new = not path.exists()
    try:
        stream = path.open("ab", buffering=0)
        is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError as error:
        problem = f"cannot write the run record: {error.strerror}"
        raise FileError("file.record", problem, location=Location(str(path))) from None
    recorder = RunRecorder(path, stream, is_file=is_file, is_new=is_new)
    if is_file and not is_new and not _is_replaceable(path):
        recorder.close()
        problem = "the file exists and is not a run record"
        hint = "use another file name; Tidegate only overwrites run records"
        raise FileError("file.record", problem, location=Location(str(path)), hint=hint)
    return recorder


def _is_replaceable(path: Path) -> bool:
    with path.open("rb") as stream:
        prefix = stream.read(_PREFIX_SIZE)
    return not prefix or prefix.startswith(f'{{"kind":"{RUN_KIND}"'.encode())


class RunRecorder(msgspec.Struct):
    """An open run record."""

    path: Path
    stream: IO[bytes]
    is_file: bool
    is_new: bool
    waves: dict[UnitId, int | None] = msgspec.field(default_factory=dict)
    targets: tuple[str, ...] = ()
    is_simulated: bool = False
    failure: str = ""
    """Why the record is incomplete; empty if it is not."""
    _is_started: bool = False

    def set_context(self, unit_trees: Iterable[UnitTree], targets: ClusterTargets) -> None:
        """Set the waves of units, and the clusters."""
        self.waves = {row.unit.id: row.wave for row in unit_rows(unit_trees)}
        self.targets = tuple(describe_targets(targets))
        self.is_simulated = targets.simulation is not None

    def write_head(self, plan: Plan, time: Ms) -> None:
        """Write the head with a plan; a newer head replaces the one before."""
        if not self._is_started and self.is_file:
            self.stream.truncate(0)
        self._is_started = True
        head = msgspec.structs.replace(
            RunHead.from_plan(plan, self.waves),
            at=time,
            target=self.targets,
            is_simulated=self.is_simulated,
        )
        self.add(run_head_document(head))

    def add(self, document: msgspec.Struct) -> None:
        """Write one line; after a failed write, none."""
        if self.failure:
            return
        line = f"{sanitize_document(msgspec.json.encode(document).decode())}\n".encode()
        try:
            while line:
                line = line[self.stream.write(line) :]
        except OSError as error:
            self.failure = error.strerror or "unknown error"

    def close(self) -> None:
        """Close the file, and delete it if it is new and empty."""
        self.stream.close()
        if self.is_new and self.is_file and not self._is_started:
            self.path.unlink(missing_ok=True)

    def error(self) -> OutputError | None:
        """Return the error if the record is incomplete; else None."""
        if not self.failure:
            return None
        problem = f"the run record is incomplete: {self.failure}"
        return OutputError("output.record", problem, location=Location(str(self.path)))


class RecordingObserver:
    """A rollout observer that also writes the run record."""

    def __init__(self, observer: RolloutObserver, recorder: RunRecorder) -> None:
        self._observer = observer
        self._recorder = recorder
        self._clock: Callable[[], Ms] = lambda: Ms(0)

    @property
    def progress(self) -> RolloutProgress:
        return self._observer.progress

    def start(self, plan: Plan, *, clock: Callable[[], Ms], stop: Callable[[str], None]) -> None:
        self._clock = clock
        self._observer.start(plan, clock=clock, stop=stop)
        self._recorder.write_head(plan, clock())

    def replace_plan(self, plan: Plan) -> None:
        self._observer.replace_plan(plan)
        self._recorder.write_head(plan, self._clock())

    def emit(self, event: Event) -> None:
        self._observer.emit(event)
        self._recorder.add(event_document(event))


def read_run_record(path: Path) -> RunRecord:
    """Read a run record. Raises FileError.

    The last line of a killed rollout may be incomplete. Of several heads the last counts.
    """
    lines, location = read_user_file(path).splitlines(), Location(str(path))
    if not lines:
        raise FileError("file.record", "the file is empty", location=location, hint=RECORD_HINT)
    head = _parse_head(lines[0], location)
    events: list[Event] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            entry = msgspec.json.decode(line, type=_RunLine)
            if entry.kind == RUN_KIND and not entry.event:
                head = _parse_head(line, location)
            elif entry.event != EXPLAINED_EVENT:
                units = {str(unit.id): unit.id for unit in head.units}
                events.append(
                    event_from_document(msgspec.json.decode(line, type=EventDocument), units)
                )
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines):
                return RunRecord(head, tuple(events), truncated_lines=1)
            problem = f"invalid event: {sanitize(str(error))}"
            location = Location(str(path), line=number)
            raise FileError("file.record", problem, location=location) from None
    return RunRecord(head, tuple(events))


class _RunLine(msgspec.Struct):
    event: str = ""
    kind: str = ""


class _RunHeader(msgspec.Struct):
    kind: str = ""
    version: int = 0


def _parse_head(line: bytes, location: Location) -> RunHead:
    try:
        header = msgspec.json.decode(line, type=_RunHeader)
        if header.kind == RUN_KIND and header.version == RUN_VERSION:
            return run_head_from_document(msgspec.json.decode(line, type=RunHeadDocument))
        why = (
            f"its version is {header.version}, but Tidegate reads {RUN_VERSION}"
            if header.kind == RUN_KIND
            else f"its kind is `{sanitize(header.kind)}`"
        )
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = sanitize(str(error))
    except KeyError as error:
        why = f"a step belongs to unit `{sanitize(str(error.args[0]))}`, which it does not contain"
    problem = f"not a run record: {why}"
    raise FileError("file.record", problem, location=location, hint=RECORD_HINT)
