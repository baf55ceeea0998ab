"""Implementation of `tree` and `trace`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tidegate.cli import options
from tidegate.cli.confirm import print_target
from tidegate.cli.options import Flags
from tidegate.cli.output import max_line_width, note
from tidegate.cli.progress import ProgressLine
from tidegate.cli.requests import (
    cluster_targets,
    load_request,
    static_targets,
    with_workspace,
)
from tidegate.cli.unit_arguments import find_unit_ids
from tidegate.clusters.session import ClusterTargets, Session
from tidegate.inspection.lineage import read_lineages, trace_object
from tidegate.inspection.live_tree import LiveTreeBuilder
from tidegate.model.units.unit import UnitId
from tidegate.model.views.tree import TraceBlock, TreeNode
from tidegate.report.lineage import trace_document, trace_lines, tree_document, tree_lines
from tidegate.workspace.completeness import workspace_findings
from tidegate.workspace.workspace import Workspace


def show_tree(
    arguments: Sequence[str], flags: Flags, progress_line: ProgressLine, *, compact: bool
) -> int:
    """Print the trees of units: by Git, or by the selected cluster. Without arguments: of roots."""
    target = _selected_clusters(flags)

    async def read_trees(
        session: Session, workspace: Workspace
    ) -> tuple[list[TreeNode], Workspace]:
        units = _tree_units(arguments, workspace, flags)
        lineages = await read_lineages(workspace, session)
        nodes = []
        for unit in units:
            lineage = next((item for item in lineages if unit in item.units), None)
            if lineage is None:
                continue
            if target.simulation:
                nodes.append(lineage.build_tree(unit, compact=compact))
            else:
                nodes.append(await LiveTreeBuilder(lineage, session, compact).build(unit))
        return nodes, workspace

    nodes, workspace = with_workspace(load_request(flags["path"], flags), flags, read_trees, target)
    progress_line.clear()
    if target.simulation:
        note("the tree shows Git; add --context to show the cluster")
    else:
        print_target(flags)
    lines = (line for node in nodes for line in tree_lines(node))
    options.print_result(flags["output"], map(tree_document, nodes), lines)
    return options.print_findings(workspace_findings(workspace))


def _tree_units(arguments: Sequence[str], workspace: Workspace, flags: Flags) -> Sequence[UnitId]:
    if arguments:
        namespace = flags.get("namespace_filter", "")
        return find_unit_ids(arguments, workspace.unit_trees, namespace)
    return [member.unit.id for member in workspace.members if member.unit.parent is None]


def _selected_clusters(flags: Flags) -> ClusterTargets:
    """Return the selected clusters; without any, only Git is read."""
    values = (flags["context"], flags["kubeconfig"], flags["clusters"] or None)
    is_selected = any(value is not None for value in values)
    return cluster_targets(flags) if is_selected else static_targets(flags)


def show_trace(kind: str, name: str, flags: Flags, progress_line: ProgressLine) -> int:
    """Print the origin of an object and return the exit code."""
    target = _selected_clusters(flags)

    async def read_trace(
        session: Session, workspace: Workspace
    ) -> tuple[list[TraceBlock], Workspace]:
        lineages = await read_lineages(workspace, session)
        return await trace_object(
            lineages, kind, name, flags["namespace_filter"], session
        ), workspace

    blocks, workspace = with_workspace(
        load_request(flags["path"], flags), flags, read_trace, target
    )
    progress_line.clear()
    options.print_result(
        flags["output"], [trace_document(blocks)], trace_lines(blocks, max_line_width(sys.stdout))
    )
    return options.print_findings(workspace_findings(workspace))
