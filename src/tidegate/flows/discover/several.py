"""A place that holds several things to render, and nothing that says which of them is meant."""

from __future__ import annotations

import posixpath
from collections.abc import Collection

from tidegate.errors import Place, RenderError
from tidegate.flows.discover.scan import Scan, tops

MOST_NAMED = 12


def refuse_several(what: str, scan: Scan, repositories: Collection[str] = ()) -> None:
    """Raise where overlays, charts or whole repositories lie below: one of them is to be named.

    A directory with objects of its own is meant by itself, whatever charts lie beside them.
    """
    whole = {*repositories, *(one for one in (*scan.overlays, *scan.charts) if scan.is_below(one))}
    found = [one for one in tops(whole, scan) if one != scan.below]
    if not found or (not repositories and scan.below in scan.plain):
        return
    found = tops({*found, *scan.plain} - {scan.below}, scan)
    start = "" if scan.below == "." else f"{scan.below}/"
    names = [posixpath.join(what, one.removeprefix(start)) for one in found]
    named = ", ".join(f"`{one}`" for one in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    problem = f"`{what}` holds several things to render, and nothing says which of them is meant"
    hint = f"point at one of: {named}{more}"
    raise RenderError("render.several", problem, where=Place(what), hint=hint)
