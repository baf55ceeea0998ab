"""One process of Tidegate that may be killed, frozen or stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.support.tidegate_runs import ROOT

LIMIT = 240.0
"""Seconds after which a process counts as hanging."""


class PrintedEvent(msgspec.Struct, frozen=True):
    """One line of `-o json`, with the fields that an attack waits for."""

    event: str = ""
    name: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a process ended."""

    code: int
    events: tuple[PrintedEvent, ...]
    errors: str
    is_hanging: bool

    @property
    def last(self) -> list[PrintedEvent]:
        """The last events, which show why the process ended as it did."""
        kinds = ("gate.waiting", "step.failed", "object.refused", "rollout.finished")
        return [event for event in self.events if event.event in kinds][-3:]

    @property
    def is_killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass(slots=True)
class RunningCommand:
    """A process, the user that the audit log knows it by, and the revision that it rolls out."""

    user: str
    revision: int
    process: subprocess.Popen[str]
    errors: Path
    events: list[PrintedEvent] = field(default_factory=list)
    is_hanging: bool = False
    _watchdog: threading.Timer = field(init=False)

    def __post_init__(self) -> None:
        self._watchdog = threading.Timer(LIMIT, self._give_up)
        self._watchdog.daemon = True
        self._watchdog.start()

    @classmethod
    def start(
        cls,
        arguments: Sequence[str | Path],
        *,
        user: str,
        revision: int,
        directory: Path,
        clock: int = 0,
    ) -> RunningCommand:
        """Start Tidegate; `clock`: by how many seconds its clock is ahead."""
        module = ["tests.adversary.wrong_clock", str(clock)] if clock else ["tidegate"]
        errors = directory / f"{user}.stderr"
        with errors.open("w") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", *module, *map(str, arguments), "--yes", "-o", "json"],
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], "HOME": str(directory)},
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
            )
        return cls(user, revision, process, errors)

    def read_until(self, is_last: Callable[[PrintedEvent], bool]) -> bool:
        """Read events up to one; False if the process ended before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(msgspec.json.decode(line, type=PrintedEvent))
            if is_last(self.events[-1]):
                return True
        return False

    def read(self, count: int) -> bool:
        """Read a number of events; False if the process ended before."""
        last = len(self.events) + count
        return self.read_until(lambda _: len(self.events) >= last)

    def live_on(self, seconds: float) -> bool:
        """Let the process run; False if it ended in this time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def end(self) -> CommandEnd:
        """Wait for the end of the process."""
        assert self.process.stdout is not None
        if not self.process.stdout.closed:
            self.read_until(lambda _: False)
            self.process.stdout.close()
        code = self.process.wait()
        self._watchdog.cancel()
        return CommandEnd(code, tuple(self.events), self.errors.read_text(), self.is_hanging)

    def _give_up(self) -> None:
        self.is_hanging = True
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
