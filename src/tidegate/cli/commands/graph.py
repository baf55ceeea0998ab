"""`tidegate graph`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import HEALTH, PLAIN_UNIT, SELECTION, SIMULATION, Flags, with_options
from tidegate.cli.output import print_document, print_line
from tidegate.cli.progress import show_progress
from tidegate.model.display_paths import location_text

if TYPE_CHECKING:
    from tidegate.model.views.graph import GraphView

FORMATS = ["text", "mermaid", "dot", "json", "svg", "html"]


@options.command()
@options.PATH
@click.option("--critical-path", is_flag=True, help="Show the longest chain of steps.")
@click.option("--why", nargs=2, metavar="A B", default=None, help="Explain why A waits for B.")
@with_options(SELECTION, PLAIN_UNIT, SIMULATION, HEALTH)
@options.output_option(FORMATS, show_default=True)
def graph(**flags: Unpack[Flags]) -> int:
    """Show which units and objects of PATH depend on which, what is missing, and cycles.

    PATH is an Argo CD or Flux repository, a directory of manifests, a Helm chart or a Kustomize
    overlay. Edges are declared (waves, dependsOn, annotations) or inferred from references between
    objects. No cluster is needed. With --unit, Tidegate reads all of PATH and shows this part.

    \b
    Examples:
      tidegate graph
      tidegate graph clusters/prod -o html > graph.html
      tidegate graph . --why Job/shop/migrate StatefulSet/shop/db
      tidegate graph . --critical-path --unit apps
    """
    path = flags["path"]
    output = flags["output"]
    progress_line = show_progress(f"reading {path}", quiet=output != "text")
    from msgspec.structs import replace

    from tidegate.cli.requests import load_request, static_targets, with_workspace
    from tidegate.inspection.graph import GraphQuery, graph_views
    from tidegate.workspace.completeness import workspace_findings

    graph_query = GraphQuery(
        units=flags["units"], critical=flags["critical_path"], why=flags["why"] or None
    )
    request = replace(load_request(path, flags), units=())
    workspace, views = with_workspace(
        request, flags, partial(graph_views, query=graph_query), static_targets(flags)
    )
    progress_line.clear()
    for unit_tree, (graph_result, view) in zip(workspace.unit_trees, views, strict=False):
        options.print_warnings(graph_result.plan_result.notes)
        if output == "text" and len(views) > 1:
            print_line(
                f"{unit_tree.root_id}, from {location_text(unit_tree.members[0].unit.location)}"
            )
        for line in _output_lines(output, view):
            (print_line if output == "text" else print_document)(line)
    plan_findings = (
        finding for graph_result, _ in views for finding in graph_result.plan_result.findings
    )
    return options.print_findings((*workspace_findings(workspace), *plan_findings))


def _output_lines(output: str, view: GraphView) -> Iterator[str]:
    """Yield the graph in the output format."""
    import msgspec

    from tidegate.report.graph.diagrams import dot_lines, mermaid_lines
    from tidegate.report.graph.layout import build_diagram
    from tidegate.report.graph.page import html_lines
    from tidegate.report.graph.svg import svg_lines
    from tidegate.report.graph.text import graph_document, graph_lines

    match output:
        case "json":
            yield msgspec.json.encode(graph_document(view)).decode()
        case "mermaid":
            yield from mermaid_lines(build_diagram(view))
        case "dot":
            yield from dot_lines(build_diagram(view))
        case "svg":
            yield from svg_lines(build_diagram(view))
        case "html":
            yield from html_lines(view, build_diagram(view))
        case _:
            yield from graph_lines(view)
