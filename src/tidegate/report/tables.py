"""Tables whose columns are as wide as what stands in them, for names that kubectl's users know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from tidegate.report.rollout.rows import cells

GAP = "  "
CUT = "…"
INDENT = "    "
LEAST_NOTE = 30
"""Cells that a column of sentences must have."""


def table_lines(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    room: int | None = None,
    spared: Sequence[str] = (),
) -> Iterator[str]:
    """A line of heads, and one for each row.

    With less room than it needs, columns are left out, the first of those that are `spared` first;
    what is too wide even so is cut.
    """
    columns = dict(zip(heads, zip(*(heads, *rows), strict=True), strict=True))
    widths = {head: max(map(cells, column)) for head, column in columns.items()}
    left_out: list[str] = []
    for head in spared if room is not None else ():
        if sum(widths.values()) + len(GAP) * (len(widths) - 1) > (room or 0):
            left_out.append(head)
            del widths[head]
    for line in zip(*(columns[head] for head in widths), strict=True):
        pairs = zip(line, widths.values(), strict=True)
        yield _cut(GAP.join(one + " " * (width - cells(one)) for one, width in pairs), room)
    if left_out:
        *others, last = sorted(left_out, key=list(heads).index)
        named = f"{', '.join(others)} and {last}" if others else last
        yield _cut(f"(no room for {named})", room)


def noted_lines(
    heads: Sequence[str], rows: Sequence[Sequence[str]], room: int | None = None
) -> Iterator[str]:
    """A table whose last column is a sentence, which is broken where there is too little room.

    Where hardly any is left for it, it stands below its line.
    """
    lines = [*table_lines(heads, rows)]
    if room is None or max(map(cells, lines)) <= room:
        yield from lines
        return
    shorter = [*table_lines(heads[:-1], [row[:-1] for row in rows], room)]
    width = max(map(cells, shorter)) + len(GAP)
    sentences = [row[-1] for row in rows]
    if room - width < LEAST_NOTE:
        yield shorter[0]
        for line, told in zip(shorter[1:], sentences, strict=True):
            yield line
            yield from wrap(told, room, initial_indent=INDENT, subsequent_indent=INDENT)
        return
    for line, told in zip(shorter, (heads[-1], *sentences), strict=True):
        first, *more = wrap(told, room - width) or [""]
        yield f"{line}{' ' * (width - cells(line))}{first}".rstrip()
        yield from (f"{' ' * width}{one}" for one in more)


def told_lines(sentence: str, room: int | None, indent: str = INDENT) -> list[str]:
    """A sentence as lines for the room that there is; those behind the first are indented."""
    return [sentence] if room is None else wrap(sentence, room, subsequent_indent=indent)


def _cut(line: str, room: int | None) -> str:
    line = line.rstrip()
    if room is None or cells(line) <= room:
        return line
    while cells(line) > max(0, room - 1):
        line = line[:-1]
    return f"{line}{CUT}"
