"""`tidegate units`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_path
from tidegate.cli.options import NAME_AND_NAMESPACE, SELECTION, Flags, with_options
from tidegate.cli.progress import show_progress


@click.command()
@click.argument("what", metavar="[PATH]", default=".", shell_complete=complete_path)
@with_options(NAME_AND_NAMESPACE, SELECTION)
@options.OFFLINE
@options.REPO_MAP
@click.option("--objects", is_flag=True, help="Render every unit, to count its objects.")
@options.OUTPUT
def units(what: str, **flags: Unpack[Flags]) -> int:
    """Show the units of a repository: who brings them, and what they deploy where.

    PATH is a repository of Argo CD's or Flux's, or of both. An Application, a Kustomization and a
    HelmRelease are units; so are charts, overlays and directories that are pointed at.

    Charts and overlays that can bring no further units are not rendered without --objects: what is
    wrong with them is said by `plan`.

    \b
    Examples:
      tidegate units
      tidegate units clusters/prod
      tidegate units . --root clusters/prod -o json
    """
    progress_line = show_progress(f"looking for units in {what}", quiet=flags["output"] == "json")
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
            load_request(what, flags), render_settings(flags), only_units=only_units
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
