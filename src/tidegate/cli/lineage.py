"""Implementation of `tree` and `trace`."""

from __future__ import annotations

import sys

from tidegate.cli import options
from tidegate.cli.confirm import print_target
from tidegate.cli.options import Flags
from tidegate.cli.output import max_line_width, note
from tidegate.cli.progress import ProgressLine
from tidegate.cli.requests import load_request, with_workspace
from tidegate.cli.unit_arguments import load_unit_trees
from tidegate.clusters.session import Session
from tidegate.inspection.lineage import read_lineages, trace_object
from tidegate.inspection.live_tree import LiveTreeBuilder
from tidegate.model.views.tree import TraceBlock, TreeNode
from tidegate.report.lineage import trace_document, trace_lines, tree_document, tree_lines
from tidegate.workspace.completeness import workspace_findings
from tidegate.workspace.selection import select_resources
from tidegate.workspace.workspace import Workspace


def show_tree(
    kind: str, name: str, flags: Flags, progress_line: ProgressLine, *, compact: bool
) -> int:
    """Print the tree of a unit: by Git, or by the selected cluster."""
    (resource,) = select_resources(
        load_unit_trees(flags["place"], flags),
        (kind,),
        (name,),
        namespace=flags["namespace_filter"],
    )
    flags["sandbox"] = flags["still"] = not _is_cluster_selected(flags)

    async def read_trees(
        session: Session, workspace: Workspace
    ) -> tuple[list[TreeNode], Workspace]:
        lineages = await read_lineages(workspace, session)
        matching = [lineage for lineage in lineages if resource.id in lineage.units][:1]
        if flags["sandbox"]:
            return [
                lineage.build_tree(resource.id, compact=compact) for lineage in matching
            ], workspace
        trees = (LiveTreeBuilder(lineage, session, compact) for lineage in matching)
        return [await live_tree.build(resource.id) for live_tree in trees], workspace

    nodes, workspace = with_workspace(load_request(flags["place"], flags), flags, read_trees)
    progress_line.clear()
    if flags["sandbox"]:
        note("this is what Git says; with --context it is what the cluster has")
    else:
        print_target(flags)
    lines = (line for node in nodes for line in tree_lines(node))
    options.print_result(flags["output"], map(tree_document, nodes), lines)
    return options.print_findings(workspace_findings(workspace))


def _is_cluster_selected(flags: Flags) -> bool:
    """Return whether a cluster is selected; otherwise only Git is read."""
    values = (flags["context"], flags["kubeconfig"], flags["clusters"] or None)
    return any(value is not None for value in values)


def show_trace(kind: str, name: str, flags: Flags, progress_line: ProgressLine) -> int:
    """Print the origin of an object and return the exit code."""
    flags["sandbox"] = flags["still"] = not _is_cluster_selected(flags)

    async def read_trace(
        session: Session, workspace: Workspace
    ) -> tuple[list[TraceBlock], Workspace]:
        lineages = await read_lineages(workspace, session)
        return await trace_object(
            lineages, kind, name, flags["namespace_filter"], session
        ), workspace

    blocks, workspace = with_workspace(load_request(flags["place"], flags), flags, read_trace)
    progress_line.clear()
    options.print_result(
        flags["output"], [trace_document(blocks)], trace_lines(blocks, max_line_width(sys.stdout))
    )
    return options.print_findings(workspace_findings(workspace))
