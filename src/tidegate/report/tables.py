"""Tables whose columns are as wide as what stands in them, for names that kubectl's users know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.report.rollout.rows import cells

GAP = "  "


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A line of heads, and one for each row."""
    lines = [heads, *rows]
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        pairs = zip(line, widths, strict=True)
        yield GAP.join(one + " " * (width - cells(one)) for one, width in pairs).rstrip()
