"""A progress line on standard error, while there is nothing else to show.

    progress_line = show_progress("reading examples/first")
    ...                      # heavy imports
    progress_line.update("connecting to the cluster")
    ...
    progress_line.clear()    # before other output

The line is shown on a terminal only and is cleared when the command ends, also after an error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Self, TextIO

import click

from tidegate.cli.output import is_interactive, terminal_size

ELLIPSIS = "..."
INTERRUPT_WIDTH = len("^C") + 1
"""Space for `^C`, which a terminal prints on an interrupt."""
CLEAR_LINE = "\r\x1b[K"


def show_progress(message: str, *, quiet: bool = False) -> ProgressLine:
    """Show the progress line of the running command; not if `quiet`."""
    progress_line = ProgressLine.for_stream(sys.stderr, os.environ, quiet=quiet)
    click.get_current_context().call_on_close(progress_line.clear)
    progress_line.update(message)
    return progress_line


class ProgressLine:
    """A line with the current activity, replaced by each update."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._is_shown = False

    @classmethod
    def for_stream(
        cls, stream: TextIO | None, environ: Mapping[str, str], *, quiet: bool = False
    ) -> Self:
        """Return a progress line for a stream; silent in a pipe, and if `quiet`."""
        return cls(stream if is_interactive(stream, environ) and not quiet else None)

    def update(self, message: str) -> None:
        if self._stream is None:
            return
        columns, _ = terminal_size(self._stream)
        printable = "".join(character for character in message if character.isprintable())
        line = printable[: max(0, columns - INTERRUPT_WIDTH - len(ELLIPSIS))]
        self._write(f"{CLEAR_LINE}{line}{ELLIPSIS}")
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            self._write(CLEAR_LINE)
            self._is_shown = False

    def _write(self, text: str) -> None:
        """Write to the terminal; a closed terminal or unknown character is ignored."""
        if self._stream is not None:
            with suppress(OSError, UnicodeEncodeError):
                self._stream.write(text)
                self._stream.flush()
