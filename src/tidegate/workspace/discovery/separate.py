"""The charts, overlays and directories in a tree that nothing in the tree deploys together.

Each is a plain unit without a definition. Nothing says which of them are deployed to one cluster,
so each is checked for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.errors import Location
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding, Severity
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.rendering import ToolDetection
from tidegate.model.units.unit import Unit, UnitId
from tidegate.workspace.discovery.ambiguity import (
    environment_values,
    values_findings,
)
from tidegate.workspace.discovery.result import DiscoveryResult
from tidegate.workspace.discovery.scan import (
    CHART_FILE,
    RepositoryScan,
    parent_directories,
    topmost,
)
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.rendering.result import RenderResult
from tidegate.workspace.request import LoadRequest, unit_for_path

MAX_ENVIRONMENTS = 3
"""Number of values files with which a chart is rendered, one after another."""
_SHARED_VALUES = lazy_regex(
    r"(?i)(?:^|[/._-])(?:base|ci|common|defaults?|examples?|global|samples?|secrets?|shared|template"
    r"|tests?)(?=[._-])"
)
"""Names of values files that are no environment by themselves."""


def plain_units(request: LoadRequest) -> list[Unit]:
    """Return PATH as a plain unit, once for each cluster."""
    return [
        unit_for_path(request.path_or_url, request.policy, cluster=name, **request.render_flags)
        for name in request.clusters
    ]


def chart_units(request: LoadRequest, scan: RepositoryScan) -> list[Unit]:
    """Return the charts that create units, once for each of their values files."""
    return [
        unit
        for chart in scan.unit_charts
        for values in _values_of_chart(chart, request, scan)
        for unit in _units_at(chart, _with_values(request, values, scan), scan, values)
    ]


def without_deployed_charts(unit_trees: Iterable[UnitTree], root: Path) -> tuple[UnitTree, ...]:
    """Return the trees without the charts that a unit of another tree deploys with its values."""
    kept = [*unit_trees]
    for tree in (*kept,):
        path = tree.members[0].unit.sources[0].path
        others = (other for other in kept if other.members[0].unit.sources[0].path != path)
        if any(path in _deployed_paths(other, root) for other in others):
            kept.remove(tree)
    return tuple(kept)


def _deployed_paths(unit_tree: UnitTree, root: Path) -> Iterator[str]:
    """Yield the directories of this repository that units with a definition render."""
    for member in unit_tree.members:
        if isinstance(member.result, RenderResult) and not member.unit.is_implicit:
            for source, rendered in zip(member.unit.sources, member.result.sources, strict=False):
                if rendered.root == root:
                    yield source.path


def soften_assumed_units(result: DiscoveryResult) -> DiscoveryResult:
    """Return the result; findings about how charts and directories are loaded become notes.

    Most charts are incomplete without the values that they are deployed with, and many files are
    no manifests.
    """
    reasons: dict[UnitId, str] = {}
    files: dict[str, str] = {}
    for unit_tree in result.unit_trees:
        reason = _why_uncertain(unit_tree.members[0].unit, result.scan)
        for unit in (member.unit for member in unit_tree.members) if reason else ():
            reasons[unit.id] = reason
            files |= {unit.location.name: reason} if unit.location else {}

    def soften(finding: Finding) -> Finding:
        name = finding.location.name if finding.location else ""
        reason = files.get(name) or (reasons.get(finding.unit) if finding.unit else "")
        if finding.severity is Severity.NOTE or not reason:
            return finding
        return msgspec.structs.replace(finding, severity=Severity.NOTE, reason=reason)

    return replace(result, findings=tuple(map(soften, result.findings)))


def _why_uncertain(unit: Unit, scan: RepositoryScan) -> str:
    """Return why a unit without definition may be loaded otherwise; empty for an overlay.

    Nothing else has to be known to build an overlay, or a chart with chosen values.
    """
    path = unit.sources[0].path
    if not unit.is_implicit or (path in scan.overlays and path not in scan.charts):
        return ""
    if path not in scan.charts:
        return "no unit in this repository deploys this directory"
    if unit.location is not None and not unit.location.name.endswith(CHART_FILE):
        return ""
    return "no unit in this repository says with which values the chart is deployed"


def separate_units(request: LoadRequest, scan: RepositoryScan) -> list[Unit]:
    """Return the topmost charts, overlays and directories of manifests in the search path."""
    units = [unit for path in _topmost_targets(scan) for unit in _units_at(path, request, scan)]
    for path, files in _plain_directories(scan).items():
        units += [with_files(unit, files) for unit in _units_at(path, request, scan)]
    return units


def _units_at(
    path: str, request: LoadRequest, scan: RepositoryScan, values: str = ""
) -> Iterator[Unit]:
    chart_file = CHART_FILE if path == "." else f"{path}/{CHART_FILE}"
    file = chart_file if path in scan.charts else scan.overlays.get(path, path)
    for unit in plain_units(replace(request, path_or_url=str(scan.root / path))):
        location = Location(values or file)
        yield msgspec.structs.replace(unit, location=location, is_implicit=True)


def _values_of_chart(chart: str, request: LoadRequest, scan: RepositoryScan) -> list[str]:
    """Return the values files to render a chart with; an empty name for `values.yaml` alone."""
    if request.render_flags.get("values"):
        return [""]
    return _environments(chart, scan)[:MAX_ENVIRONMENTS] or [""]


def _environments(chart: str, scan: RepositoryScan) -> list[str]:
    """Return the values files of a chart that are for one environment each."""
    files = environment_values(chart, scan)
    return [file for file in files if not _SHARED_VALUES.search(file.rpartition("/")[2])]


def environment_findings(charts: Iterable[str], scan: RepositoryScan) -> list[Finding]:
    """Return the notes about charts that are rendered once for each of their values files."""
    findings = values_findings((chart for chart in charts if not _environments(chart, scan)), scan)
    for chart in charts:
        files = _environments(chart, scan)
        if not files:
            continue
        more = len(files) - MAX_ENVIRONMENTS
        without = f", and not with {more} more" if more > 0 else ""
        findings.append(
            Finding(
                code="units.values",
                severity=Severity.NOTE,
                message=f"chart `{chart}` is rendered once with each of"
                f" {join_quoted(files[:MAX_ENVIRONMENTS], MAX_ENVIRONMENTS)}{without}",
                location=Location(files[0]),
                reason="no unit in this repository says which values files the chart is deployed"
                " with",
                fix=f"choose one with `--values {files[-1]}`",
            )
        )
    return findings


def _with_values(request: LoadRequest, values: str, scan: RepositoryScan) -> LoadRequest:
    if not values:
        return request
    file: Path = scan.root / values
    return replace(request, render_flags={**request.render_flags, "values": (file,)})


def _topmost_targets(scan: RepositoryScan) -> list[str]:
    """Return the charts and overlays that no other one in the search path includes."""
    return sorted(
        path
        for path in {*scan.overlays, *scan.charts} - scan.components
        if scan.is_searched(path)
        and not scan.overlay_index.including(path)
        and scan.charts.isdisjoint(parent_directories(path))
    )


def _plain_directories(scan: RepositoryScan) -> dict[str, tuple[str, ...]]:
    """Return the topmost directories with files that no overlay or chart reads, and these files."""
    others = {*scan.overlays, *scan.charts}
    free: dict[str, list[str]] = {}
    for file in scan.manifest_files:
        folders = [*parent_directories(file)]
        if others.isdisjoint(folders) and not scan.overlay_index.uses(file):
            free.setdefault(folders[0], []).append(file)
    files_by_top: dict[str, list[str]] = {top: [] for top in topmost(free, scan)}
    for folder, files in free.items():
        tops = (path for path in (folder, *parent_directories(folder)) if path in files_by_top)
        files_by_top.setdefault(next(tops, folder), []).extend(files)
    return {top: tuple(files) for top, files in files_by_top.items() if files}


def with_files(unit: Unit, files: tuple[str, ...]) -> Unit:
    """Return a plain directory with these files alone."""
    (source,) = unit.sources
    if not isinstance(source.request, ToolDetection):
        return unit
    directory = msgspec.structs.replace(source.request.directory, files=files)
    request = msgspec.structs.replace(source.request, directory=directory)
    return msgspec.structs.replace(
        unit, sources=(msgspec.structs.replace(source, request=request),)
    )
