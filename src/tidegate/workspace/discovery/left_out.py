"""Root units that nothing deploys: a kustomization leaves them out, or no cluster reaches them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence

from tidegate.errors import Location
from tidegate.files import read_regular_file
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.unit import Unit
from tidegate.workspace.discovery.scan import RepositoryScan, parent_directories
from tidegate.workspace.discovery.unit_tree import UnitTree, is_flux_unit, renders_itself
from tidegate.workspace.rendering.result import RenderFailure

KUSTOMIZATION, HELM_RELEASE = "Kustomization", "HelmRelease"
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
    used, unused = _split_unused(kept)
    findings = [_finding(overlay, units, scan) for overlay, units in left_out.items()]
    return used, findings + _unused_findings(unused, used)


def _split_unused(unit_trees: Sequence[UnitTree]) -> tuple[list[UnitTree], list[UnitTree]]:
    """Return the trees that may be deployed, and those that no cluster of this repository reaches.

    A HelmRelease is never the start of a cluster. A Kustomization may be that of another cluster
    if it is in a directory beside the clusters that this repository starts.
    """
    starting = [unit_tree for unit_tree in unit_trees if _starts_cluster(unit_tree)]
    clusters = {id(unit_tree) for unit_tree in starting}
    top_directories = {
        name for unit_tree in starting for name in _top_directories(unit_tree.members[0].unit)
    }
    used: list[UnitTree] = []
    unused: list[UnitTree] = []
    for unit_tree in unit_trees:
        root = unit_tree.members[0].unit
        units = [member.unit for member in unit_tree.members if member.unit.id.kind]
        is_unused = (
            bool(clusters)
            and id(unit_tree) not in clusters
            and all(map(is_flux_unit, units))
            and (
                all(unit.id.kind == HELM_RELEASE for unit in units)
                or top_directories.isdisjoint({".", next(_top_directories(root))})
            )
        )
        (unused if is_unused else used).append(unit_tree)
    return used, unused


def _starts_cluster(unit_tree: UnitTree) -> bool:
    """Return whether a Kustomization of a tree creates itself or other Kustomizations."""
    root = unit_tree.members[0].unit
    return (root.id.kind == KUSTOMIZATION and renders_itself(root)) or any(
        member.unit.id.kind == KUSTOMIZATION
        and member.unit.parent is not None
        and member.unit.parent.kind == KUSTOMIZATION
        for member in unit_tree.members
    )


def _top_directories(unit: Unit) -> Iterator[str]:
    """Yield the first directory of the file of a unit, and of the paths that it deploys."""
    file = unit.location.name if unit.location else "."
    for path in (posixpath.dirname(file), *(source.path for source in unit.sources)):
        yield path.partition("/")[0] or "."


def _unused_findings(unused: Iterable[UnitTree], used: Iterable[UnitTree]) -> list[Finding]:
    """Return a note for each directory with units that no cluster of this repository deploys."""
    unread = next(
        (
            unit_tree.root_id
            for unit_tree in used
            if _starts_cluster(unit_tree) and isinstance(unit_tree.members[0].result, RenderFailure)
        ),
        None,
    )
    by_directory: dict[str, list[str]] = {}
    for unit_tree in unused:
        location = unit_tree.members[0].unit.location
        if location is not None:
            by_directory.setdefault(location.name.partition("/")[0], []).append(location.name)
    return [
        Finding(
            code="units.left-out",
            severity=Severity.NOTE,
            message=f"no unit in this repository deploys {join_quoted(files, MAX_NAMED)}",
            location=Location(files[0]),
            reason=f"`{unread}` cannot be rendered, and may deploy it"
            if unread
            else "the Kustomizations of the clusters in this repository do not reach it",
            fix="deploy it with a Kustomization, or delete it",
        )
        for files in (list(dict.fromkeys(names)) for names in by_directory.values())
    ]


def _built_overlays(unit_tree: UnitTree, scan: RepositoryScan) -> Iterator[str]:
    """Yield the directories of this repository that the units of a tree build with kustomize."""
    for member in unit_tree.members:
        result = member.result
        if isinstance(result, RenderFailure):
            if scan.root in result.trees and not member.unit.is_implicit:
                paths = (source.path for source in member.unit.sources)
                yield from (path for path in paths if path in scan.overlays)
            continue
        for source, rendered in zip(member.unit.sources, result.sources, strict=False):
            if rendered.tool == "Kustomize" and rendered.root == scan.root:
                yield source.path


def _deciding_overlay(unit: Unit, scan: RepositoryScan, deployed: Collection[str]) -> str:
    """Return the deployed kustomization that leaves a unit out; empty if there is none."""
    file = unit.location.name if unit.location else ""
    path = posixpath.dirname(file) if file in scan.overlays.values() else file
    for folder in parent_directories(path):
        if folder == "." or folder not in scan.overlays:
            continue
        including = scan.overlay_index.all_including(folder)
        if {folder, *including, *_generated_above(folder, scan)} & set(deployed):
            return "" if folder in scan.overlay_index.all_including(path) else folder
    return ""


def _generated_above(folder: str, scan: RepositoryScan) -> Iterator[str]:
    """Yield the directories above a kustomization that would include it without one of their own.

    Flux writes one where the path of a unit has none (`generateKustomization` in
    `kustomize_generator.go` of fluxcd/pkg/kustomize 1.35.6); it ends at the next kustomization.
    """
    for parent in parent_directories(folder):
        if parent in scan.overlays:
            return
        yield parent


def _finding(overlay: str, units: list[Unit], scan: RepositoryScan) -> Finding:
    """Return the finding about the files that a kustomization leaves out, which may be intended."""
    kustomization = scan.overlays[overlay]
    files = list(dict.fromkeys(unit.location.name for unit in units if unit.location))
    return Finding(
        code="units.left-out",
        severity=Severity.NOTE,
        message=f"`{kustomization}` does not include {join_quoted(files, MAX_NAMED)}, so nothing"
        " deploys it",
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
