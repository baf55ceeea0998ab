"""Text tables with columns as wide as their content, like those of kubectl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from tidegate.report.styled_text import text_width

GAP = "  "
ELLIPSIS = "…"
INDENT = "    "
MIN_MESSAGE_WIDTH = 30
"""Minimum width of a message column."""


def table_lines(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    max_width: int | None = None,
    optional: Sequence[str] = (),
) -> Iterator[str]:
    """Yield a header line and a line for each row.

    If the table is too wide, `optional` columns are dropped in that order, then lines are cut.
    """
    columns = dict(zip(headers, zip(*(headers, *rows), strict=True), strict=True))
    widths = {header: max(map(text_width, column)) for header, column in columns.items()}
    dropped: list[str] = []
    for header in optional if max_width is not None else ():
        if sum(widths.values()) + len(GAP) * (len(widths) - 1) > (max_width or 0):
            dropped.append(header)
            del widths[header]
    for line in zip(*(columns[header] for header in widths), strict=True):
        pairs = zip(line, widths.values(), strict=True)
        yield _truncate(
            GAP.join(cell + " " * (width - text_width(cell)) for cell, width in pairs), max_width
        )
    if dropped:
        *first_dropped, last = sorted(dropped, key=list(headers).index)
        names = f"{', '.join(first_dropped)} and {last}" if first_dropped else last
        yield _truncate(f"({names} hidden; widen the terminal)", max_width)


def message_table_lines(
    headers: Sequence[str], rows: Sequence[Sequence[str]], max_width: int | None = None
) -> Iterator[str]:
    """Yield a table whose last column is a message that is wrapped on a narrow terminal.

    With hardly any space left, the message is placed below its line.
    """
    lines = [*table_lines(headers, rows)]
    if max_width is None or max(map(text_width, lines)) <= max_width:
        yield from lines
        return
    short_lines = [*table_lines(headers[:-1], [row[:-1] for row in rows], max_width)]
    width = max(map(text_width, short_lines)) + len(GAP)
    messages = [row[-1] for row in rows]
    if max_width - width < MIN_MESSAGE_WIDTH:
        yield short_lines[0]
        for line, message in zip(short_lines[1:], messages, strict=True):
            yield line
            yield from wrap(message, max_width, initial_indent=INDENT, subsequent_indent=INDENT)
        return
    for line, message in zip(short_lines, (headers[-1], *messages), strict=True):
        first, *more_lines = wrap(message, max_width - width) or [""]
        yield f"{line}{' ' * (width - text_width(line))}{first}".rstrip()
        yield from (f"{' ' * width}{line_part}" for line_part in more_lines)


def wrap_lines(message: str, max_width: int | None, indent: str = INDENT) -> list[str]:
    """Return a message wrapped to the width; continuation lines are indented."""
    return [message] if max_width is None else wrap(message, max_width, subsequent_indent=indent)


def _truncate(line: str, max_width: int | None) -> str:
    line = line.rstrip()
    if max_width is None or text_width(line) <= max_width:
        return line
    while text_width(line) > max(0, max_width - 1):
        line = line[:-1]
    return f"{line}{ELLIPSIS}"
