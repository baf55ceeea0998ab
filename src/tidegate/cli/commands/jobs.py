"""`tidegate jobs`: list and rerun of Jobs and hooks."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.command import TidegateCommand
from tidegate.cli.completion import complete_jobs
from tidegate.cli.options import (
    PLAIN_UNIT,
    ROLLOUT_OUTPUT,
    SELECTION,
    TARGET,
    Flags,
    with_options,
)
from tidegate.cli.output import max_line_width
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.actions.jobs import JobRerun
    from tidegate.cli.progress import ProgressLine
    from tidegate.cli.rollout_display import RolloutTerminal
    from tidegate.clusters.session import Session
    from tidegate.model.rollouts.event import RolloutOutcome
    from tidegate.model.views.jobs import JobRow
    from tidegate.workspace.request import LoadRequest
    from tidegate.workspace.workspace import Workspace


@click.group()
def jobs() -> None:
    """List Jobs and hooks of units, and run one again.

    \b
    Examples:
      tidegate jobs list --context prod
      tidegate jobs rerun fineract-schema-migration --context prod
    """


@jobs.command("list", cls=TidegateCommand)
@options.PATH
@with_options(SELECTION, PLAIN_UNIT, TARGET)
@options.OUTPUT
def list_(**flags: Unpack[Flags]) -> int:
    """List the Jobs and hooks of PATH in their order, with their status.

    \b
    Examples:
      tidegate jobs list --context prod
      tidegate jobs list overlays/prod --namespace shop -o json
    """
    path = flags["path"]
    progress_line = show_progress("looking for Jobs and hooks", quiet=flags["output"] == "json")
    from tidegate.cli.confirm import print_target
    from tidegate.cli.requests import load_request, with_workspace
    from tidegate.report.jobs import job_document, job_lines
    from tidegate.workspace.completeness import workspace_findings

    workspace, rows = with_workspace(load_request(path, flags), flags, _list_jobs)
    progress_line.clear()
    print_target(flags)
    options.print_result(
        flags["output"], map(job_document, rows), job_lines(rows, max_line_width(sys.stdout))
    )
    return options.print_findings(workspace_findings(workspace))


async def _list_jobs(session: Session, workspace: Workspace) -> tuple[Workspace, list[JobRow]]:
    from tidegate.actions.jobs import list_jobs

    return workspace, await list_jobs(session, workspace)


@jobs.command(cls=TidegateCommand, short_help="Run a Job or hook again, and its dependents.")
@click.argument("called", metavar="NAME", shell_complete=complete_jobs)
@options.PATH
@with_options(SELECTION, PLAIN_UNIT, TARGET)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@with_options(ROLLOUT_OUTPUT)
def rerun(called: str, **flags: Unpack[Flags]) -> int:
    """Delete a Job or hook and run it again, then everything that depends on it, in order.

    Later Jobs and hooks run again, and other later objects are applied if they differ: in the same
    unit, and in units that depend on it. Earlier and parallel objects are not changed. With --unit,
    only that unit is processed.

    \b
    Examples:
      tidegate jobs rerun fineract-schema-migration --context prod
      tidegate jobs rerun shop/migrate overlays/prod --context prod --yes
    """
    path = flags["path"]
    progress_line = show_progress(f"reading {path}", quiet=flags["output"] == "json")
    from tidegate.cli.confirm import needs_confirmation
    from tidegate.cli.outcome_codes import OUTCOME_CODES
    from tidegate.cli.requests import load_request
    from tidegate.cli.run_async import run_async

    request, must_confirm = load_request(path, flags), needs_confirmation(flags)
    rerun = _run_rerun(request, called, flags, progress_line, must_confirm=must_confirm)
    return OUTCOME_CODES[run_async(rerun)]


def _confirm(terminal: RolloutTerminal, planned_rerun: JobRerun) -> None:
    """Ask the user to confirm. Raises if the user declines."""
    lines = [
        f"delete {planned_rerun.ref} and run it again",
        *(f"then {ref}" for ref in planned_rerun.also_run),
    ]
    terminal.confirm(lines, "Run again?")


async def _run_rerun(
    request: LoadRequest,
    name: str,
    flags: Flags,
    progress_line: ProgressLine,
    *,
    must_confirm: bool,
) -> RolloutOutcome:
    from tidegate.actions.jobs import rerun_job
    from tidegate.cli.rollout_display import on_screen

    async with on_screen(request, flags, progress_line, "rendering") as (
        terminal,
        session,
        workspace,
    ):
        confirm = partial(_confirm, terminal) if must_confirm else None
        return await rerun_job(name, workspace, session, terminal, confirm)
