"""Display of a rollout, and handling of interruptions.

    async with Screen.for_stream(sys.stdout, os.environ) as screen:
        screen.set_title("default/shop", commands)
        screen.start(plan, clock=world.now, stop=driver.stop)
        ...                      # every event goes to screen.emit
        screen.finish(evidence)

The first interruption stops the rollout cleanly, the second at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Self, TextIO

from tidegate.cli.output import output_error, terminal_size
from tidegate.cli.screen.outputs import JsonOutput, LineOutput, LiveOutput, RolloutOutput
from tidegate.cli.screen.terminal import SafeStream, TerminalCapabilities, detect_capabilities
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import Event
from tidegate.model.rollouts.evidence import Evidence
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.report.rollout.summary import NO_NEXT_COMMANDS, PASSED, NextCommands, killed_message

FRAME_INTERVAL = 0.1
"""Seconds between two frames."""
STOPPING_MESSAGE = "stopping after the current writes; press Ctrl-C again to stop at once"
INTERRUPTED = 130
Clock = Callable[[], Ms]
StopFunction = Callable[[str], None]


class Screen:
    """A rollout on a stream: a live view on a terminal, else lines or JSON."""

    def __init__(
        self,
        safe_stream: SafeStream,
        capabilities: TerminalCapabilities,
        *,
        json: bool,
        stream: TextIO,
    ) -> None:
        self.progress = RolloutProgress(Ms(0))
        self._stream = safe_stream
        self._live_output: LiveOutput | None = None
        self._output: RolloutOutput
        if json:
            self._output = JsonOutput(self.progress, safe_stream)
        elif capabilities.is_interactive:
            size = partial(terminal_size, stream)
            self._output = self._live_output = LiveOutput(
                self.progress, safe_stream, capabilities, size
            )
        else:
            self._output = LineOutput(self.progress, safe_stream, capabilities.symbols)
        self._clock: Clock | None = None
        self._stop: StopFunction | None = None
        self._commands = NO_NEXT_COMMANDS
        self._interruptions = 0
        self._is_cancelled = False
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._handlers: dict[signal.Signals, Callable[[], None]] = {}

    @classmethod
    def for_stream(cls, stream: TextIO, environ: Mapping[str, str], *, json: bool = False) -> Self:
        """Return the screen for a stream."""
        return cls(
            SafeStream(stream), detect_capabilities(stream, environ), json=json, stream=stream
        )

    @property
    def is_live(self) -> bool:
        return self._live_output is not None

    def set_title(self, title: str, commands: NextCommands = NO_NEXT_COMMANDS) -> None:
        """Set the title, and the commands to resume a stopped rollout."""
        self._commands = commands
        if self._live_output is not None:
            self._live_output.set_title(title)

    def start(self, plan: Plan, *, clock: Clock, stop: StopFunction) -> None:
        """Start with a plan, a clock and a function that stops the rollout."""
        self._clock, self._stop = clock, stop
        self.progress.start = self.progress.now = clock()
        self.progress.add_plan(plan)
        if self._live_output is not None:
            self._live_output.terminal.open(_keyboard_fd())
        self._tick()

    def emit(self, event: Event) -> None:
        self._output.on_event(event)

    def replace_plan(self, plan: Plan) -> None:
        """Add the steps of a newer plan."""
        self.progress.add_plan(plan)

    def raise_if_output_failed(self) -> None:
        """Raise if the rollout passed but its output could not be written."""
        if self._stream.is_closed and self.progress.outcome in {"", PASSED}:
            raise output_error(self._stream.error_number)

    def finish(
        self, evidence: Iterable[Evidence] = (), commands: NextCommands = NO_NEXT_COMMANDS
    ) -> None:
        """Write how the rollout ended, and stop drawing."""
        self._stop_timer()
        self._output.finish(evidence, commands)

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._add_signal_handler(signal.SIGINT, self._interrupt)
        self._add_signal_handler(signal.SIGTERM, self._interrupt)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            self._add_signal_handler(signal.SIGHUP, self._interrupt)
        if self._live_output is not None:
            self._add_signal_handler(signal.SIGWINCH, self._refresh)
            self._add_signal_handler(signal.SIGTSTP, self._suspend)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop_timer()
        loop = asyncio.get_running_loop()
        for number in self._handlers:
            loop.remove_signal_handler(number)
        if self._live_output is not None:
            self._live_output.terminal.close()
        if self._is_cancelled and (self._stop is None or self.progress.outcome):
            raise KeyboardInterrupt from None
        if self._is_cancelled:
            raise KeyboardInterrupt(killed_message(self._commands)) from None

    @contextmanager
    def default_signals(self) -> Iterator[None]:
        """Handle signals as usual while the user is asked: Ctrl-C raises KeyboardInterrupt."""
        loop = asyncio.get_running_loop()
        for number in self._handlers:
            loop.remove_signal_handler(number)
        try:
            yield
        finally:
            for number, handler in self._handlers.items():
                loop.add_signal_handler(number, handler)

    def _add_signal_handler(self, number: signal.Signals, handler: Callable[[], None]) -> None:
        asyncio.get_running_loop().add_signal_handler(number, handler)
        self._handlers[number] = handler

    def _tick(self) -> None:
        self._refresh()
        self._timer = asyncio.get_running_loop().call_later(FRAME_INTERVAL, self._tick)

    def _refresh(self) -> None:
        if self._clock is not None:
            self._output.refresh(self._clock())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._clock = None

    def _interrupt(self) -> None:
        """Stop cleanly while the rollout runs; else, or the second time, at once; then kill."""
        self._interruptions += 1
        is_running = self._stop is not None and not self.progress.outcome
        if self._interruptions == 1 and self._stop is not None and is_running:
            self._output.show_notice(STOPPING_MESSAGE)
            self._stop("interrupted")
            self._refresh()
        elif self._interruptions <= 2 and self._task is not None:  # noqa: PLR2004
            self._is_cancelled = True
            self._task.cancel()
        else:
            if self._live_output is not None:
                self._live_output.terminal.close()
            os._exit(INTERRUPTED)

    def _suspend(self) -> None:
        """Restore the terminal on Ctrl-Z, and continue below when resumed."""
        if self._live_output is None:
            return
        terminal = self._live_output.terminal
        terminal.close()
        os.kill(os.getpid(), signal.SIGSTOP)
        terminal.open(_keyboard_fd())
        terminal.start_below()
        self._refresh()


def _keyboard_fd() -> int | None:
    return sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
