"""Units that are applied by hand the first time, because they deploy themselves."""

from __future__ import annotations

import posixpath

from msgspec.structs import replace

from tidegate.model.finding import Finding, Severity
from tidegate.workspace.discovery.unit_tree import UnitTree, renders_itself


def without_bootstrap_dependencies(unit_tree: UnitTree) -> UnitTree:
    """Return the tree; a root that deploys itself does not wait for its sibling units.

    All files of its directory are applied by hand with it, so nothing waits forever.
    """
    root, *others = unit_tree.members
    location = root.unit.location
    if location is None or root.unit.is_implicit or not renders_itself(root.unit):
        return unit_tree
    directory = posixpath.dirname(location.name)
    siblings = {
        member.unit.id
        for member in others
        if member.unit.location and posixpath.dirname(member.unit.location.name) == directory
    }
    kept = tuple(item for item in root.unit.dependencies if item.unit not in siblings)
    if kept == root.unit.dependencies:
        return unit_tree
    findings = tuple(
        Finding(
            code="units.bootstrap",
            severity=Severity.NOTE,
            message=f"`{root.unit.id}` depends on `{item.unit}`, which it deploys itself",
            location=item.location,
            reason="on an empty cluster both must be applied by hand",
            unit=root.unit.id,
        )
        for item in root.unit.dependencies
        if item.unit in siblings
    )
    root = replace(root, unit=replace(root.unit, dependencies=kept))
    return replace(unit_tree, members=(root, *others), findings=(*unit_tree.findings, *findings))
