"""Findings and errors about charts, overlays and directories that PATH does not select."""

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
    """Return the notes about directories that are not part of their parent directory."""
    return [
        Finding(
            code="units.not-included",
            severity=Severity.NOTE,
            message=f"`{path}` is not part of this directory",
            location=Location(path),
            reason="it is a separate overlay or chart that no file in this directory references",
            fix=f"pass `{path}` as PATH to check it",
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
            message=f"no unit in this repository deploys {named}{more}",
            location=Location(unused[0]),
            reason="charts in this repository create all units",
            fix="pass one of these directories as PATH to check it",
        )
    ]


def unit_chart_findings(scan: RepositoryScan, unit_trees: Iterable[UnitTree]) -> list[Finding]:
    """Return the notes about charts that create units, and that no unit deploys."""
    used = _deployed_paths(unit_trees)
    return [
        Finding(
            code="units.not-included",
            severity=Severity.NOTE,
            message=f"chart `{chart}` creates units, but no unit in this repository deploys it",
            location=Location(f"{chart}/{CHART_FILE}" if chart != "." else CHART_FILE),
            reason="the unit that deploys it, and its values, are defined elsewhere",
            fix=f"pass `{chart}` as PATH to check the units that it creates",
        )
        for chart in scan.unit_charts
        if chart not in used
    ]


def require_single_target(
    path_or_url: str, scan: RepositoryScan, repositories: Iterable[str] = ()
) -> None:
    """Raise RenderError if PATH contains several things to render."""
    candidates = find_nested(scan, repositories)
    if not candidates:
        return
    candidates = topmost({*candidates, *scan.manifest_directories} - {scan.search_path}, scan)
    start = "" if scan.search_path == "." else f"{scan.search_path}/"
    names = [posixpath.join(path_or_url, path.removeprefix(start)) for path in candidates]
    named = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    problem = f"`{path_or_url}` contains several things to render"
    hint = f"set PATH to one of: {named}{more}"
    raise RenderError("render.ambiguous", problem, location=Location(path_or_url), hint=hint)
