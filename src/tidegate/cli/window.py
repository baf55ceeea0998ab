"""Output of text: lines for people, documents for programs, errors and notes.

Names, messages and paths come from files and clusters. Control characters, line breaks and CI
commands in them are escaped. Nothing heavy is imported here: the first output of a command must
not wait for imports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TextIO

DEFAULT_SIZE = (80, 24)
SizeFunction = Callable[[], tuple[int, int]]


def is_interactive(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal with a movable cursor. The stream may be None."""
    return stream is not None and stream.isatty() and environ.get("TERM", "") not in {"", "dumb"}


def max_line_width(stream: TextIO) -> int | None:
    """Return the width of lines; None if the stream is no terminal."""
    return terminal_size(stream)[0] if stream.isatty() else None


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Return columns and lines; a default if the terminal does not report them."""
    with suppress(OSError, ValueError):
        columns, lines = os.get_terminal_size(stream.fileno())
        if columns > 0 and lines > 0:
            return columns, lines
    return DEFAULT_SIZE
