"""Rows of styled text that fit a width, and the marks that a terminal can show.

A row is made of spans. What a style looks like is for whoever shows it.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

import msgspec

from tidegate.errors import escaped, escaped_part


class Style(StrEnum):
    PLAIN = "plain"
    STRONG = "strong"
    FAINT = "faint"
    GOOD = "good"
    BAD = "bad"
    BUSY = "busy"
    ODD = "odd"
    """Worth a second look."""


class Span(msgspec.Struct, frozen=True, gc=False):
    """A piece of a row. Whatever text it is given, it stays on its line and commands nothing."""

    text: str
    style: Style = Style.PLAIN

    def __post_init__(self) -> None:
        if not self.text.isprintable() or "##" in self.text:
            msgspec.structs.force_setattr(self, "text", escaped_part(self.text))


Row: TypeAlias = tuple[Span, ...]
MARGIN = 4
WIDEST_MARGIN = 12
"""What follows a row stands under its text up to here, else a little way in."""


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """What stands for what."""

    passed: str
    failed: str
    skipped: str
    waiting: str
    spinner: str
    dots: str
    full: str
    empty: str
    part: str


UNICODE = Marks(
    passed="✓",
    failed="✗",
    skipped="-",
    waiting="◦",
    spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
    dots="…",
    full="━",
    empty="─",
    part=" · ",
)
ASCII = Marks(
    passed="+",
    failed="x",
    skipped="-",
    waiting=".",
    spinner="|/-\\",
    dots="..",
    full="#",
    empty=".",
    part=", ",
)


@lru_cache(maxsize=4_096)
def cells(text: str) -> int:
    """How many columns a text takes; most texts are shown in many pictures."""
    if text.isascii():
        return len(text)
    return sum(map(_cell, text))


def _cell(mark: str) -> int:
    if unicodedata.combining(mark):
        return 0
    return 2 if unicodedata.east_asian_width(mark) in "WF" else 1


def clip(text: str, width: int, dots: str = "…") -> str:
    """The beginning of a text, in at most so many columns."""
    if cells(text) <= width:
        return text
    kept = _head(text, max(0, width - len(dots))).rstrip()
    return _head(kept + dots, width)


def cut(text: str, width: int, dots: str = "…") -> str:
    """A name without its middle: both of its ends tell what it is."""
    if cells(text) <= width:
        return text
    room = width - len(dots)
    if room < 2:  # noqa: PLR2004 - no room for two ends
        return _head(text, width)
    tail = _head(text[::-1], room // 2)[::-1]
    return _head(text, room - cells(tail)) + dots + tail


def pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def width_of(row: Row) -> int:
    return sum(cells(span.text) for span in row)


def plain(row: Iterable[Span]) -> str:
    """The row without its styles."""
    return escaped("".join(span.text for span in row).rstrip())


def spread(left: Row, right: str, width: int) -> Row:
    """A row with something at its right end. Gives up the right end before the left one."""
    end = Span(right, Style.FAINT)
    gap = width - width_of(left) - cells(end.text)
    if right and gap > 0:
        return (*left, Span(" " * gap), end)
    return shorten(left, width)


def shorten(row: Row, width: int) -> Row:
    """The row, cut off where the width ends."""
    if width_of(row) <= width:
        return row
    kept: list[Span] = []
    room = width
    for span in row:
        text = _head(span.text, room)
        kept.append(Span(text, span.style))
        room -= cells(text)
        if text != span.text:
            break
    return tuple(kept)


def wrap(row: Row, width: int) -> list[Row]:
    """The row as several, where its last span is too long; what follows stands under it."""
    if not row or width_of(row) <= width:
        return [row]
    *heads, last = row
    taken = width_of(tuple(heads))
    margin = taken if taken <= WIDEST_MARGIN else MARGIN
    first, *rest = textwrap.wrap(
        last.text, max(MARGIN, width - margin), initial_indent=" " * (taken - margin)
    ) or [""]
    rows: list[Row] = [(*heads, Span(first[taken - margin :], last.style))]
    rows += [(Span(" " * margin), Span(text, last.style)) for text in rest]
    return [shorten(one, width) for one in rows]


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[: max(0, width)]
    room, end = width, 0
    for mark in text:
        room -= _cell(mark)
        if room < 0:
            break
        end += 1
    return text[:end]
