"""A stream that may be a terminal: whether it can be drawn on, and how large it is.

Nothing heavy is imported here: the first words of a command do not wait for what it will need.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TextIO

FALLBACK = (80, 24)
Size = Callable[[], tuple[int, int]]


def can_draw(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether somebody looks at it, and the cursor can be moved. A stream may be closed."""
    return stream is not None and stream.isatty() and environ.get("TERM", "") not in {"", "dumb"}


def room_on(stream: TextIO) -> int | None:
    """How wide lines may be; without limit where nobody looks."""
    return size_of(stream)[0] if stream.isatty() else None


def size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and lines; a usual size where the terminal does not tell."""
    with suppress(OSError, ValueError):
        columns, lines = os.get_terminal_size(stream.fileno())
        if columns > 0 and lines > 0:
            return columns, lines
    return FALLBACK
