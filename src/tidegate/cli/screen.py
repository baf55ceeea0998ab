"""Where a rollout is shown, and where people interrupt it.

    async with Screen.on(sys.stdout, os.environ) as screen:
        screen.introduce("default/shop", commands)
        screen.begin(plan, clock=world.now, stop=driver.stop)
        ...                      # every event goes to screen.emit
        screen.end(evidence)

The first interruption stops the rollout cleanly, the second at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Self, TextIO

from tidegate.cli.forms import Form, Log, Picture, Records
from tidegate.cli.saying import unheard
from tidegate.cli.terminal import Ability, Outlet, ability_of
from tidegate.cli.window import size_of
from tidegate.model.event import Event
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.summary import NO_COMMANDS, PASSED, Commands, cut_off

EVERY = 0.1
"""Seconds between two pictures."""
STOPPING = "stopping: what is under way ends first; Ctrl-C again stops at once"
INTERRUPTED = 130

Clock = Callable[[], Ms]
Stop = Callable[[str], None]


class Screen:
    """One rollout on one stream: a picture on a terminal, lines elsewhere, or JSON."""

    def __init__(self, outlet: Outlet, ability: Ability, *, json: bool, stream: TextIO) -> None:
        self.course = Course(Ms(0))
        self._outlet = outlet
        self._picture: Picture | None = None
        self._form: Form
        if json:
            self._form = Records(self.course, outlet)
        elif ability.live:
            size = partial(size_of, stream)
            self._form = self._picture = Picture(self.course, outlet, ability, size)
        else:
            self._form = Log(self.course, outlet, ability.marks)
        self._clock: Clock | None = None
        self._stop: Stop | None = None
        self._commands = NO_COMMANDS
        self._interruptions = 0
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._signals: list[signal.Signals] = []

    @classmethod
    def on(cls, stream: TextIO, environ: Mapping[str, str], *, json: bool = False) -> Self:
        """The screen that fits a stream."""
        return cls(Outlet(stream), ability_of(stream, environ), json=json, stream=stream)

    @property
    def is_live(self) -> bool:
        return self._picture is not None

    def introduce(self, title: str, commands: Commands = NO_COMMANDS) -> None:
        """Know what it is called, and how to go on where it is stopped."""
        self._commands = commands
        if self._picture is not None:
            self._picture.name(title)

    def begin(self, plan: Plan, *, clock: Clock, stop: Stop) -> None:
        """Know what is to come, what time it is, and how to stop."""
        self._clock, self._stop = clock, stop
        self.course.start = self.course.now = clock()
        self.course.expect(plan)
        if self._picture is not None:
            self._picture.terminal.open(_keyboard())
        self._tick()

    def emit(self, event: Event) -> None:
        self._form.take(event)

    def follow(self, plan: Plan) -> None:
        self.course.expect(plan)

    def refuse_unheard(self) -> None:
        """Raise where all went well and nobody could be told so."""
        if self._outlet.closed and self.course.result in {"", PASSED}:
            raise unheard(self._outlet.why)

    def end(self, evidence: Iterable[Evidence] = (), commands: Commands = NO_COMMANDS) -> None:
        """Say how it ended; nothing is drawn after that."""
        self._rest()
        self._form.end(evidence, commands)

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._listen(signal.SIGINT, self._interrupt)
        self._listen(signal.SIGTERM, self._interrupt)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            self._listen(signal.SIGHUP, self._interrupt)
        if self._picture is not None:
            self._listen(signal.SIGWINCH, self._look)
            self._listen(signal.SIGTSTP, self._pause)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._rest()
        loop = asyncio.get_running_loop()
        while self._signals:
            loop.remove_signal_handler(self._signals.pop())
        if self._picture is not None:
            self._picture.terminal.close()
        if self._interruptions and self._stop is None:
            raise KeyboardInterrupt from None
        if self._interruptions > 1:
            raise KeyboardInterrupt(cut_off(self._commands)) from None

    def _listen(self, number: signal.Signals, hear: Callable[[], None]) -> None:
        asyncio.get_running_loop().add_signal_handler(number, hear)
        self._signals.append(number)

    def _tick(self) -> None:
        self._look()
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._tick)

    def _look(self) -> None:
        if self._clock is not None:
            self._form.look(self._clock())

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._clock = None

    def _interrupt(self) -> None:
        """Stop cleanly; asked again, or before anything began, at once; and then by force."""
        self._interruptions += 1
        if self._interruptions == 1 and self._stop is not None:
            self._form.say(STOPPING)
            self._stop("interrupted")
            self._look()
        elif self._interruptions <= 2 and self._task is not None:  # noqa: PLR2004
            self._task.cancel()
        else:
            if self._picture is not None:
                self._picture.terminal.close()
            os._exit(INTERRUPTED)

    def _pause(self) -> None:
        """Ctrl-Z: leave the terminal as it was, and begin below when we are back."""
        if self._picture is None:
            return
        terminal = self._picture.terminal
        terminal.close()
        os.kill(os.getpid(), signal.SIGSTOP)
        terminal.open(_keyboard())
        terminal.forget()
        self._look()


def _keyboard() -> int | None:
    return sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
