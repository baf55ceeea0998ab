"""Paths with several things to render, and no way to choose one of them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from tidegate.errors import Location, RenderError
from tidegate.model.finding import Finding, Severity
from tidegate.workspace.discovery.scan import CHART_FILE, RepositoryScan, topmost
from tidegate.workspace.discovery.unit_tree import UnitTree

MAX_NAMED = 100


MAX_UNUSED_NAMED = 3


def find_nested(scan: RepositoryScan, repositories: Iterable[str] = ()) -> list[str]:
    """Return the topmost overlays, charts and repositories below PATH."""
    candidates = {
        *repositories,
        *(path for path in (*scan.overlays, *scan.charts) if scan.is_searched(path)),
    }
    return [path for path in topmost(candidates, scan) if path != scan.search_path]


def nested_findings(paths: Iterable[str]) -> list[Finding]:
    """Return the notes that these directories are not part of the directory around them."""
    return [
        Finding(
            code="units.not-included",
            severity=Severity.NOTE,
            message=f"`{path}` is a thing of its own, and no part of this directory",
            location=Location(path),
            reason="it is an overlay or a chart, and nothing here names it",
            fix="point at it to look at it",
        )
        for path in paths
    ]


def _deployed_paths(unit_trees: Iterable[UnitTree]) -> frozenset[str]:
    """Return the directories that units render."""
    units = (member.unit for unit_tree in unit_trees for member in unit_tree.members)
    return frozenset(source.path for unit in units for source in unit.sources)


def unused_findings(scan: RepositoryScan, unit_trees: Iterable[UnitTree]) -> list[Finding]:
    """Return the note about directories that no unit deploys, where charts create the units."""
    used = {*scan.unit_charts, *_deployed_paths(unit_trees)}
    known = topmost({*find_nested(scan), *scan.manifest_directories} - {scan.search_path}, scan)
    unused = [path for path in known if path not in used]
    if not unused:
        return []
    named = ", ".join(f"`{path}`" for path in unused[:MAX_UNUSED_NAMED])
    more = f" and {len(unused) - MAX_UNUSED_NAMED} more" if len(unused) > MAX_UNUSED_NAMED else ""
    return [
        Finding(
            code="units.not-included",
            severity=Severity.NOTE,
            message=f"no unit here deploys {named}{more}",
            location=Location(unused[0]),
            reason="the units are those that charts here make",
            fix="point at what is missing to look at it",
        )
    ]


def unit_chart_findings(scan: RepositoryScan, unit_trees: Iterable[UnitTree]) -> list[Finding]:
    """Return the notes about charts that create units, and that no unit deploys."""
    used = _deployed_paths(unit_trees)
    return [
        Finding(
            code="units.not-included",
            severity=Severity.NOTE,
            message=f"the chart `{chart}` makes units, and no unit here deploys it",
            location=Location(f"{chart}/{CHART_FILE}" if chart != "." else CHART_FILE),
            reason="who does, and with which values, is written elsewhere",
            fix="point at it to look at what it makes",
        )
        for chart in scan.unit_charts
        if chart not in used
    ]


def require_single_target(
    path_or_url: str, scan: RepositoryScan, repositories: Iterable[str] = ()
) -> None:
    """Raise RenderError where PATH contains several things to render."""
    candidates = find_nested(scan, repositories)
    if not candidates:
        return
    candidates = topmost({*candidates, *scan.manifest_directories} - {scan.search_path}, scan)
    start = "" if scan.search_path == "." else f"{scan.search_path}/"
    names = [posixpath.join(path_or_url, path.removeprefix(start)) for path in candidates]
    named = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    problem = (
        f"`{path_or_url}` holds several things to render, and nothing says which of them is meant"
    )
    hint = f"point at one of: {named}{more}"
    raise RenderError("render.ambiguous", problem, location=Location(path_or_url), hint=hint)
