"""Tables whose columns are as wide as what stands in them, for names that kubectl's users know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.report.rollout.rows import cells

GAP = "  "
CUT = "…"


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


def _cut(line: str, room: int | None) -> str:
    line = line.rstrip()
    if room is None or cells(line) <= room:
        return line
    while cells(line) > max(0, room - 1):
        line = line[:-1]
    return f"{line}{CUT}"
