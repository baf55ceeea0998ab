"""Terminal control: capabilities, and a block of rows that is redrawn without flicker.

Only changed rows are written, in one piece, relative to the cursor: earlier output stays. The
cursor is hidden meanwhile and always restored.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TextIO

import msgspec

from tidegate.cli.output import SizeFunction, is_interactive, redirect_to_devnull
from tidegate.report.styled_text import (
    ASCII_SYMBOLS,
    UNICODE_SYMBOLS,
    Row,
    Style,
    Symbols,
    plain_text,
    text_width,
)

STYLE_CODES = {
    Style.STRONG: "1",
    Style.FAINT: "2",
    Style.GOOD: "32",
    Style.BAD: "31",
    Style.BUSY: "36",
    Style.NOTICE: "33",
}
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
BEGIN_UPDATE, END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
"""Between these the terminal shows nothing; one that does not know them does not mind them."""
CLEAR_ROW, CLEAR_BELOW = "\x1b[K", "\x1b[J"


class TerminalCapabilities(msgspec.Struct, frozen=True):
    """Capabilities of a stream: redrawing, colors and symbols."""

    is_interactive: bool = False
    has_colors: bool = False
    symbols: Symbols = UNICODE_SYMBOLS


def detect_capabilities(stream: TextIO, environ: Mapping[str, str]) -> TerminalCapabilities:
    """Return the capabilities of a stream. `NO_COLOR` and `TERM=dumb` are honored."""
    interactive = is_interactive(stream, environ)
    has_colors = interactive and not environ.get("NO_COLOR")
    return TerminalCapabilities(
        interactive,
        has_colors,
        UNICODE_SYMBOLS if _supports_unicode(stream, environ) else ASCII_SYMBOLS,
    )


def _supports_unicode(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether the locale of the user is UTF-8; LC_CTYPE set by Python is ignored."""
    if not (stream.encoding or "").lower().startswith("utf"):
        return False
    names = [environ.get("LC_ALL"), environ.get("LANG")]
    if environ.get("LC_CTYPE") not in {None, "", "C.UTF-8"}:
        names.insert(1, environ.get("LC_CTYPE"))
    chosen = next((name for name in names if name), "utf-8")
    return "utf-8" in chosen.lower() or "utf8" in chosen.lower()


def format_row(row: Row, *, with_colors: bool) -> str:
    """Return a row with escape sequences for the terminal."""
    if not with_colors:
        return plain_text(row)
    return "".join(
        f"\x1b[{STYLE_CODES[span.style]}m{span.text}\x1b[0m"
        if span.style in STYLE_CODES
        else span.text
        for span in row
    ).rstrip()


class SafeStream:
    """A stream that may be closed or full; the rollout continues without it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_closed = False
        self.error_number: int | None = None

    def write(self, text: str) -> None:
        if self.is_closed:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            self.write(text.encode(encoding, "replace").decode(encoding))
        except OSError as error:
            self.is_closed, self.error_number = True, error.errno
            redirect_to_devnull(self._stream)

    def write_rows(self, rows: Iterable[Row], *, with_colors: bool = False) -> None:
        text = "".join(f"{format_row(row, with_colors=with_colors)}\n" for row in rows)
        if text:
            self.write(text)


class Terminal:
    """A block of rows at the cursor. `open` hides the cursor, `close` restores it."""

    def __init__(
        self, stream: SafeStream, capabilities: TerminalCapabilities, size: SizeFunction
    ) -> None:
        self._stream = stream
        self._has_colors = capabilities.has_colors
        self._size = size
        self._shown: list[str] = []
        self._widths: list[int] = []
        self._width = 0
        self._saved_echo: tuple[int, int] | None = None

    def open(self, keyboard: int | None = None) -> None:
        self._stream.write(HIDE_CURSOR)
        if keyboard is not None:
            self._disable_echo(keyboard)

    def close(self) -> None:
        self._stream.write(SHOW_CURSOR)
        self._restore_echo()

    def start_below(self) -> None:
        """Leave the rows in place; the next block starts below them."""
        self._shown, self._widths = [], []

    def draw(self, rows: Sequence[Row]) -> None:
        """Update the shown rows."""
        columns, lines = self._size()
        texts = [format_row(row, with_colors=self._has_colors) for row in rows]
        if self._width != columns and self._shown:
            text = self._redrawn_rows(texts, columns, lines)
        else:
            text = self._changed_rows(texts)
        self._width = columns
        self._shown = texts
        self._widths = [sum(text_width(span.text) for span in row) for row in rows]
        if text:
            self._stream.write(f"{BEGIN_UPDATE}{text}{END_UPDATE}")

    def _changed_rows(self, rows: list[str]) -> str:
        shown = self._shown
        pairs = zip(shown, rows, strict=False)
        first_changed = next(
            (index for index, (old, new) in enumerate(pairs) if old != new),
            min(len(shown), len(rows)),
        )
        if first_changed == len(shown) == len(rows):
            return ""
        parts = [_cursor_up(len(shown) - first_changed)]
        for index in range(first_changed, len(rows)):
            is_unchanged = index < len(shown) and shown[index] == rows[index]
            parts.append("\r\n" if is_unchanged else f"{rows[index]}{CLEAR_ROW}\r\n")
        if len(rows) < len(shown):
            parts.append(CLEAR_BELOW)
        return "".join(parts)

    def _redrawn_rows(self, rows: list[str], columns: int, lines: int) -> str:
        """Return the text that redraws all rows after the terminal has wrapped them."""
        height = sum(max(1, -(-width // columns)) for width in self._widths)
        text = "".join(f"{row}{CLEAR_ROW}\r\n" for row in rows)
        return f"{_cursor_up(min(height, lines - 1))}{CLEAR_BELOW}{text}"

    def _disable_echo(self, keyboard: int) -> None:
        """Turn off echo, so that typed characters do not appear in the rows."""
        with suppress(termios.error, OSError):
            if os.tcgetpgrp(keyboard) != os.getpgrp():
                return  # in the background, to change the terminal would stop us
            attributes = termios.tcgetattr(keyboard)
            self._saved_echo = (keyboard, attributes[3])
            attributes[3] &= ~termios.ECHO
            termios.tcsetattr(keyboard, termios.TCSADRAIN, attributes)

    def _restore_echo(self) -> None:
        if self._saved_echo is None:
            return
        keyboard, flags = self._saved_echo
        self._saved_echo = None
        with suppress(termios.error, OSError):
            attributes = termios.tcgetattr(keyboard)
            attributes[3] = flags
            termios.tcsetattr(keyboard, termios.TCSADRAIN, attributes)


def _cursor_up(rows: int) -> str:
    return f"\r\x1b[{rows}A" if rows > 0 else "\r"
