"""`tidegate waves`."""

from __future__ import annotations

from typing import Unpack

from tidegate.cli import options
from tidegate.cli.options import PLAIN_UNIT, SELECTION, Flags, with_options
from tidegate.cli.output import print_line
from tidegate.cli.progress import show_progress
from tidegate.model.display_paths import location_text


@options.command()
@options.PATH
@with_options(SELECTION, PLAIN_UNIT)
@options.output_option(["table", "json"], show_default=True)
def waves(**flags: Unpack[Flags]) -> int:
    """Show which units and objects of PATH are in which wave.

    Phases are the RollingSync steps of an ApplicationSet, with their labels. Waves are those of
    Applications in their parent. Levels follow from dependsOn. The second table has the waves of
    the objects of each unit, and how many objects have a sync-wave annotation.

    \b
    Examples:
      tidegate waves
      tidegate waves clusters/prod -o json
      tidegate waves charts/laravel -f values-prod.yaml
    """
    path = flags["path"]
    output = flags["output"]
    progress_line = show_progress(f"reading {path}", quiet=output == "json")
    import sys

    from tidegate.cli.output import max_line_width
    from tidegate.cli.requests import load_request, static_targets, with_workspace
    from tidegate.inspection.waves import read_wave_inventories
    from tidegate.report.findings import is_error
    from tidegate.report.waves import waves_document, waves_lines
    from tidegate.workspace.completeness import workspace_findings

    workspace, inventories = with_workspace(
        load_request(path, flags), flags, read_wave_inventories, static_targets(flags)
    )
    progress_line.clear()
    base_findings = findings = workspace_findings(workspace)
    for unit_tree, (plan_result, inventory) in zip(workspace.unit_trees, inventories, strict=False):
        options.print_warnings(plan_result.notes)
        findings = (*findings, *plan_result.findings)
        if output == "table" and len(inventories) > 1:
            print_line(
                f"{unit_tree.root_id}, from {location_text(unit_tree.members[0].unit.location)}"
            )
        document = waves_document(inventory, (*base_findings, *plan_result.findings))
        options.print_result(output, [document], waves_lines(inventory, max_line_width(sys.stdout)))
    if output != "json":
        return options.print_findings(findings)
    return options.INPUT_ERROR if any(map(is_error, findings)) else 0
