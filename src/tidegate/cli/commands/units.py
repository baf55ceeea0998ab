"""`tidegate units`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import NAME_AND_NAMESPACE, SELECTION, Flags, with_options
from tidegate.cli.progress import show_progress


@options.command()
@options.PATH
@with_options(NAME_AND_NAMESPACE, SELECTION)
@options.OFFLINE
@options.REPO_MAP
@click.option("--objects", is_flag=True, help="Render all units and count their objects.")
@options.OUTPUT
def units(**flags: Unpack[Flags]) -> int:
    """List the units of a repository: their parents, sources and destinations.

    Applications, Kustomizations and HelmReleases are units, and so is a chart, overlay or
    directory that is given as PATH.

    Charts and overlays that cannot contain units are not rendered without --objects; `lint` and
    `plan` report errors in them.

    \b
    Examples:
      tidegate units
      tidegate units clusters/prod
      tidegate units . --root clusters/prod -o json
    """
    path = flags["path"]
    progress_line = show_progress(f"looking for units in {path}", quiet=flags["output"] == "json")
    import sys

    from tidegate.cli.output import max_line_width
    from tidegate.cli.requests import load_request, render_settings
    from tidegate.cli.run_async import run_async
    from tidegate.report.findings import is_error
    from tidegate.report.units import unit_lines, units_document
    from tidegate.workspace.completeness import workspace_findings
    from tidegate.workspace.selection import unit_rows
    from tidegate.workspace.workspace import load_without_cluster

    only_units = not flags["objects"]
    workspace = run_async(
        load_without_cluster(
            load_request(path, flags), render_settings(flags), only_units=only_units
        )
    )
    progress_line.clear()
    rows = unit_rows(workspace.unit_trees, counts=flags["objects"])
    findings = workspace_findings(workspace)
    document = units_document(rows, findings)
    options.print_result(flags["output"], [document], unit_lines(rows, max_line_width(sys.stdout)))
    if flags["output"] != "json":
        return options.print_findings(findings)
    return options.INPUT_ERROR if any(map(is_error, findings)) else 0
