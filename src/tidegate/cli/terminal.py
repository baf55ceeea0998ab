"""A terminal: what it can do, and how a picture is kept on it without flicker.

Only rows that changed are written, in one piece, from the cursor's own place: what stood on the
screen before stays there. The cursor is hidden meanwhile and always comes back.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TextIO

import msgspec

from tidegate.cli.saying import forget
from tidegate.cli.window import Size, can_draw
from tidegate.report.rollout.rows import ASCII, UNICODE, Marks, Row, Style, cells, plain

CODES = {
    Style.STRONG: "1",
    Style.FAINT: "2",
    Style.GOOD: "32",
    Style.BAD: "31",
    Style.BUSY: "36",
    Style.ODD: "33",
}
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
"""Between these the terminal shows nothing; one that does not know them does not mind them."""
CLEAR_ROW, CLEAR_BELOW = "\x1b[K", "\x1b[J"


class Ability(msgspec.Struct, frozen=True):
    """What can be done with a stream: pictures, colours, and which marks it can show."""

    live: bool = False
    colours: bool = False
    marks: Marks = UNICODE


def ability_of(stream: TextIO, environ: Mapping[str, str]) -> Ability:
    """Ask the stream and the environment. `NO_COLOR` and `TERM=dumb` are honoured."""
    live = can_draw(stream, environ)
    colours = live and not environ.get("NO_COLOR")
    return Ability(live, colours, UNICODE if _speaks_unicode(stream, environ) else ASCII)


def _speaks_unicode(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """By the locale that the user has set; Python itself sets LC_CTYPE where it is the C one."""
    if not (stream.encoding or "").lower().startswith("utf"):
        return False
    names = [environ.get("LC_ALL"), environ.get("LANG")]
    if environ.get("LC_CTYPE") not in {None, "", "C.UTF-8"}:
        names.insert(1, environ.get("LC_CTYPE"))
    chosen = next((name for name in names if name), "utf-8")
    return "utf-8" in chosen.lower() or "utf8" in chosen.lower()


def paint(row: Row, *, colours: bool) -> str:
    """A row as the terminal reads it."""
    if not colours:
        return plain(row)
    return "".join(
        f"\x1b[{CODES[span.style]}m{span.text}\x1b[0m" if span.style in CODES else span.text
        for span in row
    ).rstrip()


class Outlet:
    """A stream that may close or be full: a rollout goes on though nobody reads of it any more."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.closed = False
        self.why: int | None = None

    def write(self, text: str) -> None:
        if self.closed:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            self.write(text.encode(encoding, "replace").decode(encoding))
        except OSError as error:
            self.closed, self.why = True, error.errno
            forget(self._stream)

    def write_rows(self, rows: Iterable[Row], *, colours: bool = False) -> None:
        text = "".join(f"{paint(row, colours=colours)}\n" for row in rows)
        if text:
            self.write(text)


class Terminal:
    """A picture at the cursor's place. Opened, it hides the cursor; closed, it gives it back."""

    def __init__(self, outlet: Outlet, ability: Ability, size: Size) -> None:
        self._outlet = outlet
        self._colours = ability.colours
        self._size = size
        self._shown: list[str] = []
        self._widths: list[int] = []
        self._width = 0
        self._echo: tuple[int, int] | None = None

    def open(self, keyboard: int | None = None) -> None:
        self._outlet.write(HIDE)
        if keyboard is not None:
            self._silence(keyboard)

    def close(self) -> None:
        self._outlet.write(SHOW)
        self._unsilence()

    def forget(self) -> None:
        """Leave the picture where it is; the next one begins below."""
        self._shown, self._widths = [], []

    def draw(self, rows: Sequence[Row]) -> None:
        """Bring the picture from how it is to how it should be."""
        columns, lines = self._size()
        painted = [paint(row, colours=self._colours) for row in rows]
        if self._width != columns and self._shown:
            text = self._repainted(painted, columns, lines)
        else:
            text = self._changes(painted)
        self._width = columns
        self._shown = painted
        self._widths = [sum(cells(span.text) for span in row) for row in rows]
        if text:
            self._outlet.write(f"{BEGIN}{text}{END}")

    def _changes(self, rows: list[str]) -> str:
        known = self._shown
        pairs = zip(known, rows, strict=False)
        same = next(
            (place for place, (old, new) in enumerate(pairs) if old != new),
            min(len(known), len(rows)),
        )
        if same == len(known) == len(rows):
            return ""
        parts = [_up(len(known) - same)]
        for place in range(same, len(rows)):
            is_known = place < len(known) and known[place] == rows[place]
            parts.append("\r\n" if is_known else f"{rows[place]}{CLEAR_ROW}\r\n")
        if len(rows) < len(known):
            parts.append(CLEAR_BELOW)
        return "".join(parts)

    def _repainted(self, rows: list[str], columns: int, lines: int) -> str:
        """Terminals break rows that have become too long: the picture is higher than it was."""
        height = sum(max(1, -(-width // columns)) for width in self._widths)
        fresh = "".join(f"{row}{CLEAR_ROW}\r\n" for row in rows)
        return f"{_up(min(height, lines - 1))}{CLEAR_BELOW}{fresh}"

    def _silence(self, keyboard: int) -> None:
        """What is typed would be written into the picture."""
        with suppress(termios.error, OSError):
            if os.tcgetpgrp(keyboard) != os.getpgrp():
                return  # in the background, to change the terminal would stop us
            attributes = termios.tcgetattr(keyboard)
            self._echo = (keyboard, attributes[3])
            attributes[3] &= ~termios.ECHO
            termios.tcsetattr(keyboard, termios.TCSADRAIN, attributes)

    def _unsilence(self) -> None:
        if self._echo is None:
            return
        keyboard, flags = self._echo
        self._echo = None
        with suppress(termios.error, OSError):
            attributes = termios.tcgetattr(keyboard)
            attributes[3] = flags
            termios.tcsetattr(keyboard, termios.TCSADRAIN, attributes)


def _up(rows: int) -> str:
    return f"\r\x1b[{rows}A" if rows > 0 else "\r"
