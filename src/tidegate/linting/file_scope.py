"""Findings about some files: about the files themselves, and about the units that they belong to.

A file belongs to a unit if it defines the unit, if objects of the unit are in it, or if it is below
the directory that the unit is rendered from.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from posixpath import normpath

from msgspec.structs import replace

from tidegate.model.units.unit import UnitId
from tidegate.model.views.lint import LintReport
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.workspace import Workspace


def only_about_files(report: LintReport, workspace: Workspace, files: Iterable[str]) -> LintReport:
    """Return the report with the findings about these files and their units."""
    names = {_name_in_tree(file, workspace.scan.root) for file in files}
    members = [member for member in workspace.members if _has_file(member, names)]
    units: set[UnitId] = {member.unit.id for member in members}
    places = names | {name for member in members for name in _file_names(member)}
    findings = tuple(
        finding
        for finding in report.findings
        if finding.unit in units or (finding.location and finding.location.name in places)
    )
    return replace(report, findings=findings)


def _name_in_tree(file: str, root: Path) -> str:
    """Return a file as locations name it: relative to the root of the tree."""
    return os.path.relpath(Path(file).resolve(), root.resolve()).replace(os.sep, "/")


def _has_file(member: RenderedUnit, names: set[str]) -> bool:
    folders = [
        f"{normpath(source.path)}/"
        for source in member.unit.sources
        if source.path not in {"", "."}
    ]
    return any(name in names for name in _file_names(member)) or any(
        name.startswith(folder) for name in names for folder in folders
    )


def _file_names(member: RenderedUnit) -> Iterator[str]:
    """Yield the files that define a unit, or have objects of it."""
    if member.unit.location is not None:
        yield member.unit.location.name
    for document in member.documents:
        yield document.location.name
