"""`tidegate sync`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_path
from tidegate.cli.options import (
    APPROVE,
    DELETE_CONTENTS,
    EMPTY_CLUSTER,
    EXISTING_FILE,
    PLAIN_UNIT,
    PRUNE,
    ROLLOUT_OUTPUT,
    SELECTION,
    TARGET,
    Flags,
    with_options,
)
from tidegate.cli.output import note
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.actions.sync import SyncOptions
    from tidegate.cli.progress import ProgressLine
    from tidegate.cli.rollout_display import RolloutTerminal
    from tidegate.clusters.session import Session
    from tidegate.inspection.diff import Preview
    from tidegate.inspection.saved_plan import SavedPlan
    from tidegate.model.rollouts.event import RolloutOutcome
    from tidegate.rollout.record import RunRecorder
    from tidegate.workspace.request import LoadRequest
    from tidegate.workspace.workspace import Workspace


@options.command()
@click.argument("path", metavar="[PATH]", default="", shell_complete=complete_path)
@with_options(SELECTION, PLAIN_UNIT, TARGET, EMPTY_CLUSTER, PRUNE, DELETE_CONTENTS)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="GROUP:KIND:[NAMESPACE/]NAME",
    help="Sync only this object, without hooks. `*` matches any, `!` excludes. Repeatable.",
)
@click.option(
    "--plan",
    type=EXISTING_FILE,
    help="Run a plan that `plan --save` wrote, unchanged.",
)
@click.option("--force", is_flag=True, help="Recreate objects whose immutable fields changed.")
@click.option("--force-hooks", is_flag=True, help="Run hooks even if nothing changed.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--dry-run", is_flag=True, help="Show the plan and exit.")
@options.CHANGES_ONLY
@click.option(
    "--preflight",
    type=click.Choice(["auto", "local", "server"]),
    default="auto",
    show_default=True,
    help="Objects to validate by a server dry run before the first write. auto: those that local "
    "rules cannot decide; local: objects matched by webhooks, policies or CRD rules; server: all.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["stop", "continue"]),
    default="stop",
    show_default=True,
    help="Whether to run the steps that depend on a failed step.",
)
@click.option(
    "--force-owner", is_flag=True, help="Use a unit name that belonged to another directory."
)
@click.option(
    "--skip-broken", is_flag=True, help="Skip units with errors, and the units that depend on them."
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Pause Argo CD or Flux for these units and roll them out from here.",
)
@click.option("--hand-back", is_flag=True, help="Resume Argo CD or Flux after the rollout.")
@click.option("--ignore-sops-mac", is_flag=True, help="Apply SOPS files whose MAC does not match.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a run record (JSON lines) for `tidegate verify`.",
)
@with_options(APPROVE, ROLLOUT_OUTPUT)
def sync(**flags: Unpack[Flags]) -> int:
    """Roll out PATH wave by wave: each wave starts when the previous one is healthy.

    PATH is an Argo CD or Flux repository, a directory of manifests, a Helm chart or a Kustomize
    overlay. Objects that are already in sync are not written. Ctrl-C stops cleanly; run the same
    command again to resume.

    \b
    Examples:
      tidegate sync examples/first --sandbox
      tidegate sync overlays/prod --context prod --prune
      tidegate sync charts/web --namespace web --sync-option CreateNamespace=true
      tidegate sync . --cluster east=prod-east --cluster west=prod-west
      tidegate sync . --resource apps:Deployment:web --resource ':Service:web'
      tidegate sync . --context prod --take-over --hand-back
      tidegate sync --plan prod.plan --context prod --yes
      tidegate sync overlays/prod --context prod --record run.jsonl
    """
    path = flags["path"]
    progress_line = show_progress(f"reading {path}", quiet=flags["output"] == "json")
    from tidegate.cli.confirm import needs_confirmation
    from tidegate.cli.preview import print_previews
    from tidegate.cli.requests import load_request, with_workspace
    from tidegate.cli.run_async import run_async
    from tidegate.inspection.diff import preview_workspace
    from tidegate.inspection.saved_plan import read_plan
    from tidegate.planning.policies import partial_prune_error

    resources = flags["resources"]
    if flags["prune"] and resources:
        raise partial_prune_error()
    if flags["plan"] and resources:
        raise click.UsageError("--resource cannot be combined with --plan")
    saved = read_plan(flags["plan"]) if flags["plan"] else None
    path = path or (saved.source if saved else ".")
    request = load_request(path, flags)
    if flags["dry_run"]:
        progress_line.update(f"comparing {path} with the cluster")
        workspace, previews = with_workspace(
            request, flags, lambda session, opened: preview_workspace(session, opened, resources)
        )
        progress_line.clear()
        return print_previews(workspace, previews, flags)
    must_confirm = needs_confirmation(flags)
    recorder = _open_record(flags)
    rollout = _run_sync(request, flags, progress_line, saved, recorder, must_confirm=must_confirm)
    return run_async(rollout)


def _open_record(flags: Flags) -> RunRecorder | None:
    """Open the run record. Raises before anything is changed."""
    from tidegate.rollout.record import open_record

    if flags["record"] is None:
        return None
    recorder = open_record(flags["record"])
    click.get_current_context().call_on_close(recorder.close)
    return recorder


def _sync_options(flags: Flags, saved: SavedPlan | None) -> SyncOptions:
    from tidegate.actions.sync import SyncOptions
    from tidegate.cli.delegate import is_from_here
    from tidegate.model.units.policy import PreflightMode

    return SyncOptions(
        resources=flags["resources"],
        saved_plan=saved,
        refuses_suspended=not is_from_here(flags),
        keep_going=flags["skip_broken"],
        ignore_sops_mac=flags["ignore_sops_mac"],
        takes_over=flags["take_over"],
        hands_back=flags["hand_back"],
        preflight_mode=PreflightMode(flags["preflight"]),
        approved=flags["approved"],
    )


async def _run_sync(
    request: LoadRequest,
    flags: Flags,
    progress_line: ProgressLine,
    saved: SavedPlan | None,
    recorder: RunRecorder | None,
    *,
    must_confirm: bool,
) -> int:
    from tidegate.actions.sync import sync as sync_workspace
    from tidegate.cli.outcome_codes import OUTCOME_CODES
    from tidegate.cli.rollout_display import on_screen

    async with on_screen(request, flags, progress_line, "rendering") as (
        terminal,
        session,
        workspace,
    ):
        if recorder is not None:
            recorder.set_context(workspace.unit_trees, session.targets)
            terminal.recorder = recorder
        confirm = partial(_confirm, terminal) if must_confirm else None
        sync_options = _sync_options(flags, saved)
        outcome = await sync_workspace(request, workspace, session, sync_options, terminal, confirm)
    _print_skipped(terminal)
    _check_recorder(recorder, outcome)
    return max(OUTCOME_CODES[outcome], _print_incomplete(workspace, session))


def _confirm(terminal: RolloutTerminal, preview: Preview) -> None:
    """Ask about the changes. Raises if the user declines."""
    from tidegate.model.finding import warning_from_error
    from tidegate.report.findings import finding_lines
    from tidegate.report.plan import owner_lines, summary_line

    lines = [summary_line(preview.differences), *owner_lines(preview.differences)]
    lines += finding_lines(map(warning_from_error, preview.content_notes))
    terminal.confirm(lines, "Roll out?")


def _print_skipped(terminal: RolloutTerminal) -> None:
    terminal.note(
        f"{ref} is not pruned: it needs confirmation; add `--confirm-prune`"
        for ref in terminal.progress.unconfirmed_prunes
    )
    terminal.note(
        f"{ref} is not written: its annotations opt out of management"
        for ref in terminal.progress.unmanaged
    )


def _check_recorder(recorder: RunRecorder | None, outcome: RolloutOutcome) -> None:
    """Report an incomplete run record; raises if nothing else went wrong."""
    from tidegate.model.rollouts.event import RolloutOutcome

    if recorder is not None and (fault := recorder.error()):
        if outcome is RolloutOutcome.PASSED:
            raise fault
        note(fault.problem, severity="warning")


def _print_incomplete(workspace: Workspace, session: Session) -> int:
    """Print what could not be fetched, and return the exit code; 0 for a real cluster."""
    from tidegate.workspace.completeness import incomplete_finding

    if session.targets.simulation is None:
        return 0
    return options.print_findings(incomplete_finding(workspace.members, workspace.findings))
