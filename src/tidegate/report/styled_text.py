"""Rows of styled text for a given width, and symbols that a terminal can show.

A row is a tuple of spans. The terminal decides what a style looks like.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

import msgspec

from tidegate.errors import escape_fragment, escape_line


class Style(StrEnum):
    PLAIN = "plain"
    STRONG = "strong"
    FAINT = "faint"
    GOOD = "good"
    BAD = "bad"
    BUSY = "busy"
    NOTICE = "odd"
    """For text that needs attention."""


class Span(msgspec.Struct, frozen=True, gc=False):
    """A piece of a row. Control characters and workflow commands in its text are escaped."""

    text: str
    style: Style = Style.PLAIN

    def __post_init__(self) -> None:
        if not self.text.isprintable() or "##" in self.text:
            msgspec.structs.force_setattr(self, "text", escape_fragment(self.text))


Row: TypeAlias = tuple[Span, ...]
MARGIN = 4
MAX_MARGIN = 12
"""Continuation lines are aligned with the text up to this margin."""


class Symbols(msgspec.Struct, frozen=True, kw_only=True):
    """Symbols of states and progress bars."""

    passed: str
    failed: str
    skipped: str
    waiting: str
    spinner: str
    dots: str
    full: str
    empty: str
    separator: str


UNICODE_SYMBOLS = Symbols(
    passed="✓",
    failed="✗",
    skipped="-",
    waiting="◦",
    spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
    dots="…",
    full="━",
    empty="─",
    separator=" · ",
)
ASCII_SYMBOLS = Symbols(
    passed="+",
    failed="x",
    skipped="-",
    waiting=".",
    spinner="|/-\\",
    dots="..",
    full="#",
    empty=".",
    separator=", ",
)


@lru_cache(maxsize=4_096)
def text_width(text: str) -> int:
    """Return the number of columns of a text; cached, because texts are drawn repeatedly."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def truncate(text: str, width: int, dots: str = "…") -> str:
    """Return the start of a text, cut to a number of columns."""
    if text_width(text) <= width:
        return text
    text_prefix = _prefix(text, max(0, width - len(dots))).rstrip()
    return _prefix(text_prefix + dots, width)


def truncate_middle(text: str, width: int, dots: str = "…") -> str:
    """Return a name without its middle: both ends identify it."""
    if text_width(text) <= width:
        return text
    available = width - len(dots)
    if available < 2:  # noqa: PLR2004 - no room for two ends
        return _prefix(text, width)
    tail = _prefix(text[::-1], available // 2)[::-1]
    return _prefix(text, available - text_width(tail)) + dots + tail


def pad_text(text: str, width: int) -> str:
    return text + " " * (width - text_width(text))


def row_width(row: Row) -> int:
    return sum(text_width(span.text) for span in row)


def plain_text(row: Iterable[Span]) -> str:
    """Return a row without styles."""
    return escape_line("".join(span.text for span in row).rstrip())


def justify(left: Row, right: str, width: int) -> Row:
    """Return a row with a text at its right end, which is dropped if it does not fit."""
    right_span = Span(right, Style.FAINT)
    gap = width - row_width(left) - text_width(right_span.text)
    if right and gap > 0:
        return (*left, Span(" " * gap), right_span)
    return truncate_row(left, width)


def truncate_row(row: Row, width: int) -> Row:
    """Return the row, cut at the width."""
    if row_width(row) <= width:
        return row
    spans: list[Span] = []
    available = width
    for span in row:
        text = _prefix(span.text, available)
        spans.append(Span(text, span.style))
        available -= text_width(text)
        if text != span.text:
            break
    return tuple(spans)


def wrap_row(row: Row, width: int) -> list[Row]:
    """Return the row as several rows if its last span is too long."""
    if not row or row_width(row) <= width:
        return [row]
    *leading, last = row
    leading_width = row_width(tuple(leading))
    margin = leading_width if leading_width <= MAX_MARGIN else MARGIN
    first, *more_lines = textwrap.wrap(
        last.text, max(MARGIN, width - margin), initial_indent=" " * (leading_width - margin)
    ) or [""]
    rows: list[Row] = [(*leading, Span(first[leading_width - margin :], last.style))]
    rows += [(Span(" " * margin), Span(text, last.style)) for text in more_lines]
    return [truncate_row(part, width) for part in rows]


def _prefix(text: str, width: int) -> str:
    if text.isascii():
        return text[: max(0, width)]
    available, end = width, 0
    for character in text:
        available -= _character_width(character)
        if available < 0:
            break
        end += 1
    return text[:end]
