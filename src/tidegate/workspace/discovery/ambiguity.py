"""Findings and errors about charts, overlays and directories that PATH does not select."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from tidegate.errors import Location, RenderError
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding, Severity
from tidegate.workspace.discovery.scan import CHART_FILE, VALUES_FILE, RepositoryScan, topmost
from tidegate.workspace.discovery.unit_tree import UnitTree

MAX_NAMED = 100


MAX_UNUSED_NAMED = 3
VALUES_DIRECTORIES = ("values", "env", "envs", "environments")
"""Directories of a chart in which its values files for environments usually are."""


def find_nested(scan: RepositoryScan, repositories: Iterable[str] = ()) -> list[str]:
    """Return the topmost overlays, charts and repositories below PATH."""
    candidates = {
        *repositories,
        *(path for path in (*scan.overlays, *scan.charts) if scan.is_searched(path)),
    } - scan.components
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


def values_findings(charts: Iterable[str], scan: RepositoryScan) -> list[Finding]:
    """Return the notes about charts with values files for environments that are not in use."""
    return [
        Finding(
            code="units.values",
            severity=Severity.NOTE,
            message=f"chart `{chart}` is rendered with its `values.yaml` only; it also has"
            f" {join_quoted(files, MAX_UNUSED_NAMED)}",
            location=Location(files[0]),
            reason="no unit in this repository says which values files the chart is deployed with",
            fix=f"choose one with `--values {files[0]}`",
        )
        for chart in charts
        if (files := environment_values(chart, scan))
    ]


def environment_values(chart: str, scan: RepositoryScan) -> list[str]:
    """Return the values files beside the `values.yaml` of a chart, or in a directory for them."""
    folders = {chart, *(posixpath.join(chart, name) for name in VALUES_DIRECTORIES)}
    return sorted(
        file
        for file in scan.files
        if (posixpath.dirname(file) or ".") in folders
        and VALUES_FILE.fullmatch(file)
        and file != posixpath.normpath(posixpath.join(chart, "values.yaml"))
        and (file.rpartition("/")[2] != "values.yaml")
    )


def template_findings(scan: RepositoryScan, unit_trees: Iterable[UnitTree]) -> list[Finding]:
    """Return the note about files that are templates of units."""
    created = {name for unit_tree in unit_trees for name in unit_tree.identifiers}
    files = scan.list_templates(created)
    if not files:
        return []
    return [
        Finding(
            code="units.template",
            severity=Severity.NOTE,
            message=f"{join_quoted(files, 1)} is a template of a unit, and was not read",
            location=Location(files[0]),
            reason="the values of its expressions are filled in before it is applied",
            fix="pass the directory with the filled-in files as PATH to check them",
        )
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
    named = join_quoted(unused, MAX_UNUSED_NAMED)
    return [
        Finding(
            code="units.not-included",
            severity=Severity.NOTE,
            message=f"no unit in this repository deploys {named}",
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
            fix=f"pass `{chart}` as PATH to check the units that it creates"
            + (
                f", with `--values {files[0]}`"
                if (files := environment_values(chart, scan))
                else ""
            ),
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
    problem = f"`{path_or_url}` contains several things to render"
    hint = f"set PATH to one of: {join_quoted(names, MAX_NAMED)}"
    raise RenderError("render.ambiguous", problem, location=Location(path_or_url), hint=hint)
