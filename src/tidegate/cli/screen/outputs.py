"""Output formats of a rollout: live view, lines, or events as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from tidegate.cli.output import SizeFunction
from tidegate.cli.screen.terminal import SafeStream, Terminal, TerminalCapabilities
from tidegate.errors import escape_line, sanitize_document
from tidegate.model.rollouts.documents import event_document
from tidegate.model.rollouts.event import Event
from tidegate.model.rollouts.evidence import Evidence
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.report.rollout.explain import (
    explain_failure,
    explain_stop,
    has_failed,
    needs_explanation,
    rollout_explanation,
)
from tidegate.report.rollout.lines import RolloutLog
from tidegate.report.rollout.live import ViewOptions, final_rows, view_rows
from tidegate.report.rollout.summary import STOPPED, NextCommands, stopped_rows, summary_rows
from tidegate.report.styled_text import Row, Symbols, wrap_row


class RolloutOutput(Protocol):
    """An output format of a rollout."""

    def on_event(self, event: Event) -> None: ...
    def refresh(self, now: Ms) -> None: ...
    def show_notice(self, notice: str) -> None: ...
    def finish(self, evidence: Iterable[Evidence], commands: NextCommands) -> None: ...


class JsonOutput:
    """Writes each event as a line of JSON."""

    def __init__(self, progress: RolloutProgress, stream: SafeStream) -> None:
        self._progress = progress
        self._stream = stream

    def on_event(self, event: Event) -> None:
        self._progress.add_event(event)
        self._stream.write(
            f"{sanitize_document(msgspec.json.encode(event_document(event)).decode())}\n"
        )

    def refresh(self, now: Ms) -> None:
        """Do nothing: the passing of time is no event."""

    def show_notice(self, notice: str) -> None:
        """Do nothing: only events are written."""

    def finish(self, evidence: Iterable[Evidence], commands: NextCommands) -> None:  # noqa: ARG002 - theirs
        """Write the explanation of a failure."""
        if not needs_explanation(self._progress):
            return
        document = rollout_explanation(self._progress, evidence)
        self._stream.write(f"{sanitize_document(msgspec.json.encode(document).decode())}\n")


class LineOutput:
    """Writes timestamped lines."""

    def __init__(self, progress: RolloutProgress, stream: SafeStream, symbols: Symbols) -> None:
        self._lines = RolloutLog(progress)
        self._stream = stream
        self._symbols = symbols

    def on_event(self, event: Event) -> None:
        self._write(self._lines.add_event(event))

    def refresh(self, now: Ms) -> None:
        self._write(self._lines.advance(now))

    def show_notice(self, notice: str) -> None:
        self._write([notice])

    def finish(self, evidence: Iterable[Evidence], commands: NextCommands) -> None:
        progress = self._lines.progress
        self._stream.write_rows(ending_rows(progress, evidence, commands, self._symbols))

    def _write(self, lines: list[str]) -> None:
        if lines:
            self._stream.write("".join(f"{escape_line(line)}\n" for line in lines))


class LiveOutput:
    """Draws a live view while the rollout runs."""

    def __init__(
        self,
        progress: RolloutProgress,
        stream: SafeStream,
        capabilities: TerminalCapabilities,
        size: SizeFunction,
    ) -> None:
        self.terminal = Terminal(stream, capabilities, size)
        self._progress = progress
        self._stream = stream
        self._capabilities = capabilities
        self._size = size
        self._view = ViewOptions(symbols=capabilities.symbols)

    def set_title(self, title: str) -> None:
        self._view = msgspec.structs.replace(self._view, title=title)

    def on_event(self, event: Event) -> None:
        self._progress.add_event(event)

    def refresh(self, now: Ms) -> None:
        """Draw the view; its height never shrinks while the terminal keeps its size."""
        columns, lines = self._size()
        view = self._view
        is_same = (view.width, view.height) == (columns - 1, lines - 1)
        self._view = view = msgspec.structs.replace(
            view,
            width=max(1, columns - 1),
            height=max(1, lines - 1),
            tick=view.tick + 1,
            min_height=view.min_height if is_same else 0,
        )
        rows = view_rows(self._progress, view, now)
        self._view = msgspec.structs.replace(view, min_height=len(rows))
        self.terminal.draw(rows)

    def show_notice(self, notice: str) -> None:
        self._view = msgspec.structs.replace(self._view, notice=notice)

    def finish(self, evidence: Iterable[Evidence], commands: NextCommands) -> None:
        """Draw the folded view and write the summary below it."""
        columns, lines = self._size()
        view = msgspec.structs.replace(self._view, width=columns - 1, height=lines - 1)
        progress, symbols = self._progress, self._capabilities.symbols
        self.terminal.draw(final_rows(progress, view))
        self.terminal.start_below()
        rows = [] if has_failed(progress) else summary_rows(progress, symbols=symbols)
        rows += ending_rows(progress, evidence, commands, symbols)
        wrapped = [part for row in rows for part in wrap_row(row, columns - 1)]
        self._stream.write_rows(wrapped, with_colors=self._capabilities.has_colors)


def ending_rows(
    progress: RolloutProgress,
    evidence: Iterable[Evidence],
    commands: NextCommands,
    symbols: Symbols,
) -> list[Row]:
    """Return the explanation after the end of a rollout."""
    if progress.outcome == STOPPED:
        return [*explain_stop(progress, evidence), *stopped_rows(progress, commands)]
    if has_failed(progress):
        return explain_failure(progress, evidence, commands=commands, symbols=symbols)
    return []
