"""A terminal's screen, as far as a picture needs it: rows, a cursor, and what moves them.

When it gets narrower, it breaks rows that have become too long, as most terminals do.
"""

from __future__ import annotations

import re

TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\r|\n|\x1b[^\[]|[^\x1b\r\n]+")
UNFINISHED = re.compile(r"\x1b(\[[?0-9;]*)?$")


class VirtualTerminal:
    """What a user would see. Everything that scrolled off is still there, above."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self.columns = columns
        self.lines = lines
        self.shows_cursor = True
        self.frames = 0
        """How often something was drawn in one piece."""
        self._rows = [""]
        self._y = 0
        self._x = 0
        self._top = 0
        self._rest = ""

    @property
    def history(self) -> list[str]:
        """All rows, those that scrolled off too."""
        return [row.rstrip() for row in self._rows]

    @property
    def screen(self) -> list[str]:
        rows = self.history[self._top :]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def text(self) -> str:
        return "\n".join(self.screen)

    def feed(self, text: str) -> None:
        text = self._rest + text
        cut = UNFINISHED.search(text)
        text, self._rest = (text[: cut.start()], text[cut.start() :]) if cut else (text, "")
        for token in TOKEN.finditer(text):
            if token[2]:
                self._control(token[1], token[2])
            elif token[0] == "\r":
                self._x = 0
            elif token[0] == "\n":
                self._down()
            elif not token[0].startswith("\x1b"):
                for mark in token[0]:
                    self._print(mark)

    def resize(self, columns: int, lines: int) -> None:
        rows: list[str] = []
        for place, row in enumerate(self.history):
            if place == self._y:
                self._y = len(rows)
            parts = [row[at : at + columns] for at in range(0, len(row), columns)]
            rows += parts or [""]
        self._rows, self.columns, self.lines = rows, columns, lines
        self._y = min(self._y, len(rows) - 1)
        self._top = max(0, self._y - lines + 1)

    def _print(self, mark: str) -> None:
        if self._x == self.columns:
            self._x = 0
            self._down()
        row = self._rows[self._y].ljust(self._x)
        self._rows[self._y] = row[: self._x] + mark + row[self._x + 1 :]
        self._x += 1

    def _down(self) -> None:
        self._y += 1
        if self._y == len(self._rows):
            self._rows.append("")
        self._top = max(self._top, self._y - self.lines + 1)

    def _control(self, arguments: str, letter: str) -> None:
        match letter, arguments:
            case "A", amount:
                self._y = max(self._top, self._y - int(amount or "1"))
            case "K", _:
                self._rows[self._y] = self._rows[self._y][: self._x]
            case "J", _:
                self._rows[self._y] = self._rows[self._y][: self._x]
                del self._rows[self._y + 1 :]
            case "h" | "l", "?25":
                self.shows_cursor = letter == "h"
            case "h", "?2026":
                self.frames += 1
            case _:
                pass  # colours
