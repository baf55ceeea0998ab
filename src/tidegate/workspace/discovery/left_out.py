"""Root units that the kustomization beside them leaves out, so that nothing deploys them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator

from tidegate.errors import Location
from tidegate.files import read_regular_file
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.unit import Unit
from tidegate.workspace.discovery.scan import RepositoryScan, parent_directories
from tidegate.workspace.discovery.unit_tree import UnitTree
from tidegate.workspace.rendering.result import RenderResult

MAX_NAMED = 3


def split_left_out(
    unit_trees: Iterable[UnitTree], scan: RepositoryScan
) -> tuple[list[UnitTree], list[Finding]]:
    """Return the trees that something may deploy, and the findings about the others.

    A kustomization that a unit deploys decides about the files of its directory and of the
    directories in it. A root that deploys the kustomization itself is applied by hand.
    """
    unit_trees = list(unit_trees)
    deployed = {path for unit_tree in unit_trees for path in _built_overlays(unit_tree, scan)}
    kept: list[UnitTree] = []
    left_out: dict[str, list[Unit]] = {}
    for unit_tree in unit_trees:
        unit = unit_tree.members[0].unit
        overlay = _deciding_overlay(unit, scan, deployed)
        if overlay and overlay not in _built_overlays(unit_tree, scan):
            left_out.setdefault(overlay, []).append(unit)
        else:
            kept.append(unit_tree)
    return kept, [_finding(overlay, units, scan) for overlay, units in left_out.items()]


def _built_overlays(unit_tree: UnitTree, scan: RepositoryScan) -> Iterator[str]:
    """Yield the directories of this repository that the units of a tree build with kustomize."""
    for member in unit_tree.members:
        result = member.result
        if not isinstance(result, RenderResult):
            continue
        for source, rendered in zip(member.unit.sources, result.sources, strict=False):
            if rendered.tool == "Kustomize" and rendered.root == scan.root:
                yield source.path


def _deciding_overlay(unit: Unit, scan: RepositoryScan, deployed: Collection[str]) -> str:
    """Return the deployed kustomization that leaves a unit out; empty if there is none."""
    file = unit.location.name if unit.location else ""
    path = posixpath.dirname(file) if file in scan.overlays.values() else file
    for folder in [*parent_directories(path)][:2]:
        if folder not in scan.overlays or folder == ".":
            continue
        users = {folder, *scan.overlay_index.all_including(folder)}
        includes = folder in scan.overlay_index.all_including(path)
        return folder if users & set(deployed) and not includes else ""
    return ""


def _finding(overlay: str, units: list[Unit], scan: RepositoryScan) -> Finding:
    """Return the finding about the files that a kustomization leaves out, which may be intended."""
    kustomization = scan.overlays[overlay]
    files = list(dict.fromkeys(unit.location.name for unit in units if unit.location))
    named = ", ".join(f"`{file}`" for file in files[:MAX_NAMED])
    more = f" and {len(files) - MAX_NAMED} more" if len(files) > MAX_NAMED else ""
    return Finding(
        code="units.left-out",
        severity=Severity.NOTE,
        message=f"`{kustomization}` does not include {named}{more}, so nothing deploys it",
        location=Location(kustomization),
        reason="the entry is commented out"
        if all(_is_commented_out(file, overlay, kustomization, scan) for file in files)
        else "a kustomization deploys only the files and directories that it names",
        fix="add it to `resources`, or delete it",
    )


def _is_commented_out(file: str, overlay: str, kustomization: str, scan: RepositoryScan) -> bool:
    """Return whether a comment of a kustomization names a file, or a directory above it."""
    text = read_regular_file(scan.root / kustomization).decode(errors="replace")
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    name = posixpath.relpath(file, overlay)
    names = {name, name.partition("/")[0]}
    return any(name in comment for comment in comments for name in names)
