"""Output of previews and their findings."""

from __future__ import annotations

import os
import sys

import msgspec

from tidegate.cli import options
from tidegate.cli.confirm import print_target, target_names
from tidegate.cli.options import Flags
from tidegate.cli.output import print_document, print_line
from tidegate.cli.screen.terminal import SafeStream, detect_capabilities
from tidegate.inspection.diff import Preview
from tidegate.model.display_paths import location_text
from tidegate.report.plan import count_unchanged, plan_document, plan_rows
from tidegate.report.styled_text import plain_text
from tidegate.report.unit_states import unit_state_lines
from tidegate.workspace.completeness import incomplete_finding
from tidegate.workspace.workspace import Workspace

MAX_UNCHANGED = 40
"""Unchanged objects above which a terminal shows only changes."""


def print_previews(
    workspace: Workspace, previews: list[Preview], flags: Flags, target_name: str = ""
) -> int:
    """Print each plan as steps or as a document, then the findings; return the exit code.

    `target_name` replaces the names of the clusters.
    """
    print_target(flags, target_name)
    is_json = flags["output"] == "json"
    incomplete = incomplete_finding(workspace.members, workspace.findings)
    for unit_tree, item in zip(workspace.unit_trees, previews, strict=False):
        options.print_warnings(item.notes)
        if is_json:
            target_labels = target_names(flags, target_name)
            document = plan_document(
                item.plan,
                item.differences,
                item.rejected_count,
                target_labels,
                item.unreadable_units,
                item.unit_states,
            )
            print_document(msgspec.json.encode(document).decode())
            continue
        if len(previews) > 1:
            print_line(
                f"{unit_tree.root_id}, from {location_text(unit_tree.members[0].unit.location)}"
            )
        _print_plan(item, is_incomplete=bool(incomplete), changes_only=flags["changes_only"])
        for line in unit_state_lines(item.unit_states):
            print_line(line)
    plan_findings = (finding for preview in previews for finding in preview.findings)
    return options.print_findings((*workspace.findings, *plan_findings, *incomplete))


def _print_plan(preview: Preview, *, is_incomplete: bool, changes_only: bool | None) -> None:
    """Print a plan, with colors and signs on a terminal.

    Without `changes_only`, many unchanged objects are left out on a terminal.
    """
    capabilities = detect_capabilities(sys.stdout, os.environ)
    if changes_only is None:
        is_long = count_unchanged(preview.plan, preview.differences) > MAX_UNCHANGED
        changes_only = is_long and capabilities.is_interactive
    counts = (preview.rejected_count, len(preview.unreadable_units))
    rows = plan_rows(
        preview.plan,
        preview.differences,
        *counts,
        is_incomplete=is_incomplete,
        with_signs=capabilities.is_interactive,
        changes_only=changes_only,
    )
    if capabilities.is_interactive:
        SafeStream(sys.stdout).write_rows(rows, with_colors=capabilities.has_colors)
        return
    for row in rows:
        print_line(plain_text(row))
