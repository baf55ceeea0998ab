"""A place that holds several things to render, and nothing that says which of them is meant."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from tidegate.errors import Place, RenderError
from tidegate.flows.discover.scan import Scan, tops
from tidegate.model.finding import Finding, Severity

MOST_NAMED = 100


def things_below(scan: Scan, repositories: Iterable[str] = ()) -> list[str]:
    """Overlays, charts and whole repositories that lie below, each a thing of its own."""
    whole = {*repositories, *(one for one in (*scan.overlays, *scan.charts) if scan.is_below(one))}
    return [one for one in tops(whole, scan) if one != scan.below]


def tell_apart(things: Iterable[str]) -> list[Finding]:
    """That they are not read as parts of the directory that holds them."""
    return [
        Finding(
            code="units.apart",
            severity=Severity.NOTE,
            sentence=f"`{one}` is a thing of its own, and no part of this directory",
            where=Place(one),
            why="it is an overlay or a chart, and nothing here names it",
            fix="point at it to look at it",
        )
        for one in things
    ]


def refuse_several(what: str, scan: Scan, repositories: Iterable[str] = ()) -> None:
    """Raise where such things lie below: one of them is to be named."""
    found = things_below(scan, repositories)
    if not found:
        return
    found = tops({*found, *scan.plain} - {scan.below}, scan)
    start = "" if scan.below == "." else f"{scan.below}/"
    names = [posixpath.join(what, one.removeprefix(start)) for one in found]
    named = ", ".join(f"`{one}`" for one in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    problem = f"`{what}` holds several things to render, and nothing says which of them is meant"
    hint = f"point at one of: {named}{more}"
    raise RenderError("render.several", problem, where=Place(what), hint=hint)
