"""Implementation of `events` and `logs`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import aclosing

from tidegate.cli import options
from tidegate.cli.options import Flags
from tidegate.cli.output import max_line_width, note
from tidegate.cli.progress import ProgressLine
from tidegate.cli.requests import load_request, with_workspace
from tidegate.cli.unit_arguments import find_unit_ids
from tidegate.clusters.session import Session
from tidegate.inspection.events import find_pod_owners, read_events, read_unit_logs
from tidegate.inspection.logs import LogFollower
from tidegate.model.rollouts.evidence import ContainerLog
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.model.views.events import EventRow
from tidegate.report.events import (
    container_log_document,
    container_log_lines,
    event_lines,
    event_row_document,
    log_line_document,
)
from tidegate.workspace.completeness import workspace_findings
from tidegate.workspace.workspace import Workspace


def show_events(
    subject: tuple[str, str], types: str, flags: Flags, progress_line: ProgressLine
) -> int:
    """Print the Events about the selected objects, and return the exit code."""

    async def read(session: Session, workspace: Workspace) -> tuple[list[EventRow], Ms, Workspace]:
        rows = await read_events(workspace, session, subject, flags["namespace_filter"])
        return rows, session.world.now(), workspace

    rows, now, workspace = with_workspace(load_request(flags["path"], flags), flags, read)
    progress_line.clear()
    selected_types = {
        event_type.strip().lower() for event_type in types.split(",") if event_type.strip()
    }
    shown = [row for row in rows if not selected_types or row.type.lower() in selected_types]
    if not shown:
        note("no Events found; a cluster deletes them after an hour by default")
    lines = (
        event_lines(
            shown,
            now,
            all_namespaces=not flags["namespace_filter"],
            max_width=max_line_width(sys.stdout),
        )
        if shown
        else ()
    )
    options.print_result(flags["output"], map(event_row_document, shown), lines)
    return options.print_findings(workspace_findings(workspace))


def show_logs(
    units: tuple[str, ...], tail: int, flags: Flags, progress_line: ProgressLine, *, follows: bool
) -> int:
    """Print logs of the failing or pending pods of units, or follow all their pods.

    Without `units`, all units of PATH are meant.
    """
    if follows:
        return _follow_logs(units, tail, flags, progress_line)

    async def read(
        session: Session, workspace: Workspace
    ) -> tuple[list[ContainerLog], tuple[UnitId, ...], Workspace]:
        unit_ids = find_unit_ids(units, workspace.unit_trees, flags.get("namespace_filter", ""))
        return await read_unit_logs(workspace, session, unit_ids, tail), unit_ids, workspace

    logs, unit_ids, workspace = with_workspace(load_request(flags["path"], flags), flags, read)
    progress_line.clear()
    if not logs:
        note(f"no logs from failing or pending pods of {_unit_names(unit_ids)}")
    lines = container_log_lines(logs, max_line_width(sys.stdout))
    options.print_result(flags["output"], map(container_log_document, logs), lines)
    return options.print_findings(workspace_findings(workspace))


def _unit_names(units: Sequence[UnitId]) -> str:
    return f"`{units[0]}`" if len(units) == 1 else f"{len(units)} units"


def _follow_logs(units: Sequence[str], tail: int, flags: Flags, progress_line: ProgressLine) -> int:
    """Print each log line as it arrives, until interrupt, timeout or the end of all pods."""

    async def follow(session: Session, workspace: Workspace) -> Workspace:
        unit_ids = find_unit_ids(units, workspace.unit_trees, flags.get("namespace_filter", ""))
        objects = await find_pod_owners(workspace, session, unit_ids)
        follower, reported = LogFollower(objects, session, tail), set[str]()
        async with aclosing(follower.follow(flags["timeout"])) as batches:
            async for lines in batches:
                progress_line.clear()
                options.print_result(
                    flags["output"], map(log_line_document, lines), map(str, lines)
                )
                for container in follower.unread.keys() - reported:
                    note(f"cannot read the logs of {container}: {follower.unread[container]}")
                reported |= follower.unread.keys()
                sys.stdout.flush()
        return workspace

    workspace = with_workspace(load_request(flags["path"], flags), flags, follow)
    return options.print_findings(workspace_findings(workspace))
