"""The indexes of an Indexed Job, as its status writes them: `0,2,3,5-9`."""

from __future__ import annotations

from collections.abc import Iterable

Indexes = frozenset[int]


def parse_indexes(text: str, completions: int) -> Indexes:
    """The indexes below `completions`; what is no number is passed over."""
    found: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(found)


def format_indexes(indexes: Iterable[int]) -> str:
    """Ranges of three and more are written with a dash."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(_span(first, last) for first, last in spans)


def _span(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def first_free(count: int, completions: int, taken: Indexes) -> list[int]:
    """The lowest `count` indexes that nobody has."""
    free: list[int] = []
    for index in range(completions):
        if len(free) >= count:
            break
        if index not in taken:
            free.append(index)
    return free
