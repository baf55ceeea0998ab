"""Findings for people: what hurts most first, each with its lines, a caret, and what happens."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

from tidegate.errors import foreign
from tidegate.model.finding import Finding, Severity
from tidegate.report.findings import seen_finding
from tidegate.report.lint.report import Excerpt, LintReport, weakness

RED, YELLOW, BLUE, BOLD, DIM, OFF = (
    *("\033[31m", "\033[33m", "\033[34m", "\033[1m", "\033[2m", "\033[0m"),
)
COLOURS = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: BLUE}
MOST_NOTES = 5
"""So many notes of one code are told; of the others it is told how many there are."""
MOST_UNKNOWN = 5
USUAL_ROOM = 100


def lint_lines(report: LintReport, *, room: int | None = None, colour: bool = False) -> list[str]:
    """All of it; the last line sums it up."""
    paint = _Paint(colour)
    lines: list[str] = []
    count: Counter[str] = Counter()
    for one in report.ordered:
        count[one.code] += 1
        told = seen_finding(one)
        if one.severity is Severity.NOTE:
            if count[one.code] <= MOST_NOTES:
                lines += _brief(told, paint)
        else:
            lines += [
                *_whole(told, report.excerpts.get(one.where) if one.where else None, paint, room)
            ]
    lines += [
        f"note[{code}]: and {count - MOST_NOTES} more like these; `-o json` has them all"
        for code, count in _notes(report).items()
        if count > MOST_NOTES
    ]
    lines += _unknown(report)
    lines += _greenfield(report)
    return [*lines, summary(report)]


class _Paint:
    """Colours, where somebody can see them."""

    def __init__(self, colour: bool) -> None:  # noqa: FBT001 - it is the only thing to say
        self._colour = colour

    def __call__(self, text: str, *colours: str) -> str:
        return f"{''.join(colours)}{text}{OFF}" if self._colour else text


def _notes(report: LintReport) -> Counter[str]:
    return Counter(one.code for one in report.ordered if one.severity is Severity.NOTE)


def _head(one: Finding, paint: _Paint) -> str:
    mark = paint(f"{one.severity.value}[{one.code}]", BOLD, COLOURS[one.severity])
    return f"{mark}: {foreign(one.sentence)}"


def _brief(one: Finding, paint: _Paint) -> Iterator[str]:
    yield _head(one, paint)
    if one.where is not None:
        yield f"  at {foreign(str(one.where))}"


def _whole(one: Finding, excerpt: Excerpt | None, paint: _Paint, room: int | None) -> Iterator[str]:
    yield from _brief(one, paint)
    if excerpt is not None:
        yield from _excerpt(excerpt, paint, COLOURS[one.severity], room)
    if one.story:
        under = f" under {' and '.join(one.semantics)}" if one.semantics else ""
        yield f"  what happens{under}:"
        for number, step in enumerate(one.story, 1):
            yield from _folded(f"    {number}. ", foreign(step), room)
    for place in one.also:
        yield f"  see also {foreign(str(place))}"
    if one.why and not one.story:
        yield from _folded("  why: ", foreign(one.why), room)
    if one.fix:
        yield from _folded("  fix: ", foreign(one.fix), room)
    if one.paste:
        yield "  to paste:"
        yield from (f"    {line}" for line in one.paste.splitlines())
    yield ""


def _folded(lead: str, text: str, room: int | None) -> list[str]:
    rest = " " * len(lead)
    width = max(40, min(room or USUAL_ROOM, 120))
    return textwrap.wrap(
        text, width, initial_indent=lead, subsequent_indent=rest, break_on_hyphens=False
    ) or [lead.rstrip()]


def _excerpt(excerpt: Excerpt, paint: _Paint, colour: str, room: int | None) -> Iterator[str]:
    width = len(str(excerpt.first + len(excerpt.lines) - 1))
    limit = (room or 160) - width - 6
    for number, line in enumerate(excerpt.lines, excerpt.first):
        shown = line.expandtabs(1)
        shown = "".join(mark if mark.isprintable() else " " for mark in shown)
        gutter = paint(f"  {number:>{width}} |", DIM)
        yield f"{gutter} {shown[:limit]}".rstrip()
    last = excerpt.lines[-1]
    column = max(1, excerpt.column)
    word = len(last.rstrip()) - column + 1
    caret = paint("^" * max(1, min(word, limit - column)), colour)
    bar = paint(f"  {'':>{width}} |", DIM)
    if column <= limit:
        yield f"{bar} {' ' * (column - 1)}{caret}"


def _unknown(report: LintReport) -> Iterator[str]:
    if not report.unknown:
        return
    yield f"not known: {weakness(report.unknown)}"
    for one in report.unknown[:MOST_UNKNOWN]:
        yield f"  {foreign(one.sentence)}"
    if len(report.unknown) > MOST_UNKNOWN:
        yield f"  and {len(report.unknown) - MOST_UNKNOWN} more"


def _greenfield(report: LintReport) -> Iterator[str]:
    if report.greenfield is None:
        return
    roots = [one for one in report.greenfield if one.is_root]
    others = [one for one in report.greenfield if not one.is_root]
    if not others:
        yield "greenfield: an empty cluster can be brought up from this repository"
    else:
        things = "1 thing" if len(others) == 1 else f"{len(others)} things"
        yield f"greenfield: an empty cluster lacks {things} that nobody here brings"
    for title, found in (("", others), ("trust roots, which somebody brings by hand", roots)):
        if title and found:
            yield f"  {title}:"
        for one in found:
            needed = ", ".join(one.needed_by[:3])
            more = f" and {len(one.needed_by) - 3} more" if len(one.needed_by) > 3 else ""  # noqa: PLR2004
            yield f"  {'  ' if title else ''}{foreign(one.what)}, needed by {foreign(needed)}{more}"


def summary(report: LintReport) -> str:
    """One line: how much of what."""
    counts = [(report.count(severity), severity.value) for severity in Severity]
    told = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
    much = f"{_count(report.objects, 'object')} of {_count(report.units, 'unit')}"
    extra = [f"{report.known} known from the baseline"] if report.known else []
    extra += [f"{report.ignored} ignored with a reason"] if report.ignored else []
    return f"{told} in {much}{''.join(f'; {one}' for one in extra)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
