"""One line that says what is being done while there is nothing else to show.

    doing = say_first("reading examples/first")
    ...                      # heavy imports
    doing.say("connecting to the cluster")
    ...
    doing.clear()            # before something else is written

It is there on a terminal only, on standard error, and goes with its command, after an error, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Self, TextIO

import click

from tidegate.cli.window import can_draw, size_of

DOTS = "..."
SPARE = len("^C") + 1
"""Room for what a terminal writes when somebody interrupts."""
CLEAR = "\r\x1b[K"


def say_first(words: str, *, quiet: bool = False) -> Doing:
    """The line of the command that runs; `quiet` where programs read what it writes."""
    doing = Doing.on(sys.stderr, os.environ, quiet=quiet)
    click.get_current_context().call_on_close(doing.clear)
    doing.say(words)
    return doing


class Doing:
    """What is being done, in one line that another takes the place of."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._is_shown = False

    @classmethod
    def on(cls, stream: TextIO | None, environ: Mapping[str, str], *, quiet: bool = False) -> Self:
        """Silent in a pipe, and where it is asked to be `quiet`."""
        return cls(stream if can_draw(stream, environ) and not quiet else None)

    def say(self, words: str) -> None:
        if self._stream is None:
            return
        columns, _ = size_of(self._stream)
        printable = "".join(mark for mark in words if mark.isprintable())
        line = printable[: max(0, columns - SPARE - len(DOTS))]
        self._write(f"{CLEAR}{line}{DOTS}")
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            self._write(CLEAR)
            self._is_shown = False

    def _write(self, text: str) -> None:
        """A terminal that has gone away, or cannot show a letter, is nobody's trouble here."""
        if self._stream is not None:
            with suppress(OSError, UnicodeEncodeError):
                self._stream.write(text)
                self._stream.flush()
