"""`tidegate status`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, HEALTH, PLAIN_UNIT, SELECTION, Flags, with_options
from tidegate.cli.output import max_line_width
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.clusters.session import Session
    from tidegate.inspection.status import ObjectStatus
    from tidegate.workspace.workspace import Workspace


@options.command()
@options.PATH
@click.option("--journal", is_flag=True, help="Show the journal: which gates opened, and when.")
@click.option(
    "--rebuild-journal", is_flag=True, help="Rebuild a lost or damaged journal from live objects."
)
@with_options(SELECTION, PLAIN_UNIT, CLUSTER, HEALTH)
@options.OUTPUT
def status(*, journal: bool, rebuild_journal: bool, **flags: Unpack[Flags]) -> int:
    """Show which objects of PATH are in sync and healthy in the cluster.

    The journal is the record in the cluster from which a rollout resumes. It contains names and
    digests, and no values. A rebuilt journal does not know which hooks ran and which gates opened:
    the next rollout runs the hooks and evaluates the gates again.

    \b
    Examples:
      tidegate status examples/first
      tidegate status overlays/prod --context prod -o json
      tidegate status overlays/prod --context prod --journal
      tidegate status overlays/prod --context prod --rebuild-journal
    """
    path = flags["path"]
    if journal and rebuild_journal:
        raise click.UsageError("--journal cannot be combined with --rebuild-journal")
    if journal or rebuild_journal:
        from tidegate.cli.journal import rebuild_journals, show_journals

        return (rebuild_journals if rebuild_journal else show_journals)(path, flags)
    progress_line = show_progress(f"reading {path}", quiet=flags["output"] == "json")
    from tidegate.cli.confirm import print_target
    from tidegate.cli.requests import load_request, with_workspace
    from tidegate.report.status import status_lines
    from tidegate.workspace.completeness import incomplete_finding

    workspace, statuses = with_workspace(load_request(path, flags), flags, _read_status)
    progress_line.clear()
    print_target(flags)
    rows = [
        (object_status.ref, object_status.wave, object_status.is_synced, object_status.verdict)
        for object_status in statuses
    ]
    lines = status_lines(rows, max_line_width(sys.stdout))
    options.print_result(flags["output"], map(_status_document, statuses), lines)
    incomplete = incomplete_finding(workspace.members, workspace.findings)
    return options.print_findings((*workspace.findings, *incomplete))


async def _read_status(
    session: Session, workspace: Workspace
) -> tuple[Workspace, list[ObjectStatus]]:
    from tidegate.inspection.diff import plan_units
    from tidegate.inspection.status import read_status

    plan_result = await plan_units(workspace.deployable_trees, session)
    return workspace, await read_status(plan_result, session)


def _status_document(object_status: ObjectStatus) -> dict[str, object]:
    from tidegate.report.status import verdict_document

    return {
        "unit": str(object_status.unit) if object_status.unit else "",
        "cluster": object_status.cluster,
        **verdict_document(object_status.ref, object_status.verdict),
        "wave": object_status.wave,
        "synced": object_status.is_synced,
        "inGit": not object_status.requires_pruning,
    }
