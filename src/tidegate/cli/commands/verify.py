"""`tidegate verify`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_path
from tidegate.cli.options import (
    CLUSTER,
    EXISTING_FILE,
    HEALTH,
    PLAIN_UNIT,
    SELECTION,
    SINCE,
    Flags,
    with_options,
)
from tidegate.cli.output import max_line_width, note
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.clusters.session import Session
    from tidegate.model.finding import Finding
    from tidegate.model.rollouts.run import RunRecord
    from tidegate.model.views.verification import OrderVerification
    from tidegate.workspace.workspace import Workspace

BROKEN, MISSING = 3, 4


@options.command()
@click.argument("path", metavar="[PATH]", default="", shell_complete=complete_path)
@click.option("--record", type=EXISTING_FILE, help="Run record that `sync --record` wrote.")
@with_options(SINCE, SELECTION, PLAIN_UNIT, CLUSTER, HEALTH)
@options.OUTPUT
def verify(**flags: Unpack[Flags]) -> int:
    """Verify that a rollout kept its order: by its run record, and by timestamps in the cluster.

    With PATH, units are also compared with Git. Without --record, PATH is `.` by default, and
    Tidegate uses the cluster alone. Timestamps in Kubernetes are whole seconds, so an order within
    one second is reported as unproven.

    \b
    Examples:
      tidegate verify --record run.jsonl --context prod
      tidegate verify overlays/prod --context prod --record run.jsonl
      tidegate verify . --context prod --since 2026-11-17T22:00:00Z -o json
    """
    path = flags["path"]
    progress_line = show_progress("verifying the rollout", quiet=flags["output"] == "json")
    from tidegate.cli.confirm import print_target
    from tidegate.inspection.verify import verify_record
    from tidegate.report.verification import verification_document, verification_lines
    from tidegate.rollout.record import read_run_record

    record, since = flags["record"], flags["since"]
    path = path or ("" if record else ".")
    if since is not None and record is not None:
        raise click.UsageError("--since cannot be combined with --record")
    run_record = read_run_record(record) if record is not None else None
    findings: tuple[Finding, ...] = ()
    if run_record is not None and run_record.head.is_simulated:
        verification, target = (
            verify_record(run_record),
            "simulated cluster, removed after its rollout",
        )
    else:
        (verification, findings), target = _verify_cluster(path, run_record, flags), ""
    progress_line.clear()
    print_target(flags, target)
    _print_record(run_record, flags)
    options.print_result(
        flags["output"],
        [verification_document(verification)],
        verification_lines(verification, max_line_width(sys.stdout)),
    )
    code = BROKEN if verification.is_broken else MISSING if verification.missing else 0
    return max(code, options.print_findings(findings))


def _verify_cluster(
    path: str, run_record: RunRecord | None, flags: Flags
) -> tuple[OrderVerification, tuple[Finding, ...]]:
    """Return the verification by the cluster, and the findings about PATH."""
    from tidegate.cli.requests import cluster_targets, load_request, render_settings, with_workspace
    from tidegate.cli.run_async import run_async
    from tidegate.clusters.session import open_session
    from tidegate.inspection.verify import verify_run, verify_workspace

    async def verify_workspace_run(
        session: Session, workspace: Workspace
    ) -> tuple[OrderVerification, tuple[Finding, ...]]:
        return await verify_workspace(session, workspace, run_record, flags["since"])

    async def verify_recorded_run(recorded: RunRecord) -> OrderVerification:
        async with open_session(cluster_targets(flags), render_settings(flags)) as session:
            return await verify_run(session, recorded)

    if run_record is None or path:
        return with_workspace(load_request(path, flags), flags, verify_workspace_run)
    return run_async(verify_recorded_run(run_record)), ()


def _print_record(run_record: RunRecord | None, flags: Flags) -> None:
    from tidegate.cli.confirm import target_names
    from tidegate.cli.output import print_line
    from tidegate.report.verification import display_timestamp

    if run_record is None:
        return
    if flags["output"] != "json":
        print_line(
            f"record: started {display_timestamp(run_record.head.at)} on"
            f" {', '.join(run_record.head.target)}"
        )
    if run_record.truncated_lines:
        note("the last line of the record is truncated: the rollout was killed", severity="warning")
    if not run_record.head.is_simulated and [*run_record.head.target] != target_names(flags):
        note("the record belongs to a cluster with another name or address", severity="warning")
