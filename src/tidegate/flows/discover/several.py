"""A place that holds several things to render, and nothing that says which of them is meant."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from tidegate.errors import Place, RenderError
from tidegate.flows.discover.families import Family
from tidegate.flows.discover.scan import CHART, Scan, tops
from tidegate.model.finding import Finding, Severity

MOST_NAMED = 100
MOST_IDLE = 3


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


def _deployed(families: Iterable[Family]) -> frozenset[str]:
    """The directories that units render."""
    units = (member.unit for family in families for member in family.members)
    return frozenset(source.path for unit in units for source in unit.sources)


def tell_unused(scan: Scan, families: Iterable[Family]) -> list[Finding]:
    """What else lies below and no unit deploys, where charts are where the units begin."""
    used = {*scan.unit_charts, *_deployed(families)}
    known = tops({*things_below(scan), *scan.plain} - {scan.below}, scan)
    idle = [one for one in known if one not in used]
    if not idle:
        return []
    named = ", ".join(f"`{one}`" for one in idle[:MOST_IDLE])
    more = f" and {len(idle) - MOST_IDLE} more" if len(idle) > MOST_IDLE else ""
    return [
        Finding(
            code="units.apart",
            severity=Severity.NOTE,
            sentence=f"no unit here deploys {named}{more}",
            where=Place(idle[0]),
            why="the units are those that charts here make",
            fix="point at what is missing to look at it",
        )
    ]


def tell_unit_charts(scan: Scan, families: Iterable[Family]) -> list[Finding]:
    """Charts that make units, and that none of the units deploys."""
    used = _deployed(families)
    return [
        Finding(
            code="units.apart",
            severity=Severity.NOTE,
            sentence=f"the chart `{one}` makes units, and no unit here deploys it",
            where=Place(f"{one}/{CHART}" if one != "." else CHART),
            why="who does, and with which values, is written elsewhere",
            fix="point at it to look at what it makes",
        )
        for one in scan.unit_charts
        if one not in used
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
