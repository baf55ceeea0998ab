"""`tidegate sync`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

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
    from tidegate.cli.progress import ProgressLine
    from tidegate.cli.screen.screen import Screen
    from tidegate.clusters.session import Session
    from tidegate.controllers.takeover import TakeoverResult
    from tidegate.inspection.saved_plan import SavedPlan
    from tidegate.model.rollouts.event import RolloutOutcome
    from tidegate.model.rollouts.rollout_progress import RolloutProgress
    from tidegate.planning.plan import PlanResult, PreparedRollout
    from tidegate.rollout.record import RunRecorder
    from tidegate.rollout.run import RolloutOptions
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
    rollout = _RequestedRollout(saved, _open_record(flags), must_confirm=must_confirm)
    return run_async(_run_sync(request, flags, progress_line, rollout))


class _RequestedRollout(NamedTuple):
    """The saved plan that the rollout must match, the run recorder, and whether to ask."""

    saved: SavedPlan | None
    recorder: RunRecorder | None
    must_confirm: bool

    async def with_saved_plan(
        self, prepared: PreparedRollout, workspace: Workspace, session: Session
    ) -> PreparedRollout:
        """Return the prepared rollout, with the saved plan if there is one."""
        from tidegate.inspection.saved_plan import with_saved_plan

        if self.saved is None:
            return prepared
        return await with_saved_plan(self.saved, prepared, workspace, session)

    def recorder_for(self, workspace: Workspace, session: Session) -> RunRecorder | None:
        """Return the run recorder for these units and clusters."""
        if self.recorder is not None:
            self.recorder.set_context(workspace.unit_trees, session.targets)
        return self.recorder

    def check_recorder(self, result: RolloutOutcome) -> None:
        """Report an incomplete run record; raises if nothing else went wrong."""
        from tidegate.model.rollouts.event import RolloutOutcome

        if self.recorder is not None and (fault := self.recorder.error()):
            if result is RolloutOutcome.PASSED:
                raise fault
            note(fault.problem, severity="warning")


def _open_record(flags: Flags) -> RunRecorder | None:
    """Open the run record. Raises before anything is changed."""
    from tidegate.rollout.record import open_record

    if flags["record"] is None:
        return None
    recorder = open_record(flags["record"])
    click.get_current_context().call_on_close(recorder.close)
    return recorder


async def _confirm(prepared: PreparedRollout, session: Session, screen: Screen) -> None:
    """Compare the plan with the cluster, and ask. Raises if the user declines."""
    from tidegate.cli.confirm import confirm
    from tidegate.inspection.diff import compare_plan
    from tidegate.model.finding import warning_from_error
    from tidegate.report.findings import finding_lines
    from tidegate.report.plan import owner_lines, summary_line

    preview = (await compare_plan(prepared.plan_result, session)).preview
    if preview.has_changes:
        lines = [summary_line(preview.differences), *owner_lines(preview.differences)]
        lines += finding_lines(map(warning_from_error, preview.content_notes))
        with screen.default_signals():
            confirm(lines, "Roll out?")


async def _run_sync(
    request: LoadRequest, flags: Flags, progress_line: ProgressLine, requested: _RequestedRollout
) -> int:
    from msgspec.structs import replace

    from tidegate.actions.sync import prepare_rollout, refuse_unsafe
    from tidegate.cli.confirm import print_target
    from tidegate.cli.delegate import is_from_here
    from tidegate.cli.outcome_codes import OUTCOME_CODES
    from tidegate.cli.rollout_display import on_screen
    from tidegate.model.units.policy import PreflightMode
    from tidegate.rollout.run import RolloutOptions
    from tidegate.workspace.selection import find_approved_units

    keep_going = flags["skip_broken"]
    rollout_options = RolloutOptions(
        skip_faulty_units=keep_going, preflight_mode=PreflightMode(flags["preflight"])
    )
    async with on_screen(request, flags, progress_line, "rendering") as (
        screen,
        session,
        workspace,
    ):
        prepared = await prepare_rollout(
            workspace,
            session,
            flags["resources"],
            keep_going=keep_going,
            requested=None if is_from_here(flags) else request.selection,
        )
        prepared = await requested.with_saved_plan(prepared, workspace, session)
        progress_line.clear()
        print_target(flags)
        options.print_findings(prepared.findings)
        workspace.require_no_errors(prepared.plan_result.findings, keep_going=keep_going)
        left_out = {**prepared.left_out}
        if session.targets.simulation is None:
            ignore_macs = flags["ignore_sops_mac"]
            left_out = refuse_unsafe(prepared, keep_going=keep_going, ignore_sops_mac=ignore_macs)
        options.print_warnings(prepared.plan_result.notes)
        if requested.must_confirm:
            await _confirm(prepared, session, screen)
        rollout_options = replace(
            rollout_options,
            excluded=left_out,
            approved=find_approved_units(flags["approved"], workspace.members),
        )
        sync_request = _SyncRequest(request, flags, requested.recorder_for(workspace, session))
        result = await _run_rollout(screen, session, prepared, rollout_options, sync_request)
    _print_skipped(screen.progress)
    requested.check_recorder(result)
    return max(OUTCOME_CODES[result], _print_incomplete(workspace, session))


def _print_incomplete(workspace: Workspace, session: Session) -> int:
    """Print what could not be fetched, and return the exit code; 0 for a real cluster."""
    from tidegate.workspace.completeness import incomplete_finding

    if session.targets.simulation is None:
        return 0
    return options.print_findings(incomplete_finding(workspace.members, workspace.findings))


def _print_skipped(progress: RolloutProgress) -> None:
    _print_notes(
        f"{ref} is not pruned: it needs confirmation; add `--confirm-prune`"
        for ref in progress.unconfirmed_prunes
    )
    _print_notes(
        f"{ref} is not written: its annotations opt out of management" for ref in progress.unmanaged
    )


class _SyncRequest(NamedTuple):
    """Request, flags and recorder of a sync."""

    request: LoadRequest
    flags: Flags
    recorder: RunRecorder | None


async def _run_rollout(
    screen: Screen,
    session: Session,
    prepared: PreparedRollout,
    rollout_options: RolloutOptions,
    sync_request: _SyncRequest,
) -> RolloutOutcome:
    """Roll out with other controllers paused, and resume them if requested."""
    from msgspec.structs import replace

    from tidegate.actions.sync import can_plan_change, delete_removed_records, replan
    from tidegate.cli.rollout_display import show_rollout
    from tidegate.controllers.takeover import take_over
    from tidegate.model.rollouts.event import RolloutOutcome
    from tidegate.releases.history import build_history
    from tidegate.rollout.status_writer import build_statuses

    flags, planned = sync_request.flags, prepared.plan_result
    take_over_units, resume_afterwards = flags["take_over"], flags["hand_back"]
    takeover = await take_over(
        planned, session, takes_over=take_over_units, hands_back=resume_afterwards
    )
    _print_notes(takeover.notes)

    newest = planned
    excluded, ignore_macs = (
        rollout_options.excluded if rollout_options.skip_faulty_units else {},
        flags["ignore_sops_mac"],
    )

    async def replan_rollout() -> PlanResult:
        nonlocal newest
        replanned = replan(
            sync_request.request, session, flags["resources"], excluded, ignore_sops_mac=ignore_macs
        )
        newest = takeover.pause_in_plan(await replanned)
        return newest

    if not flags["resources"]:  # a part of a unit does not tell the status of the unit
        statuses = await build_statuses(takeover.plan_result, session, prepared.fault_findings)
        rollout_options = replace(
            rollout_options,
            statuses=statuses,
            history=await build_history(takeover.plan_result, session),
        )
    if flags["plan"] is None and can_plan_change(
        planned.plan, session
    ):  # a saved plan is not changed
        rollout_options = replace(rollout_options, replan=replan_rollout)
    result = await show_rollout(
        screen, session, takeover.plan_result.plan, rollout_options, flags, sync_request.recorder
    )
    if result is RolloutOutcome.PASSED:
        await delete_removed_records(newest, session)
    await _resume_controllers(
        takeover, session, resume=resume_afterwards and result is RolloutOutcome.PASSED
    )
    return result


async def _resume_controllers(takeover: TakeoverResult, session: Session, *, resume: bool) -> None:
    from tidegate.controllers.takeover import resume_controllers

    if resume:
        _print_notes(await resume_controllers(takeover, session))
    elif takeover.paused:
        _print_notes((f"{takeover.paused_message}; add `--hand-back` to resume them",))


def _print_notes(notes: Iterable[str]) -> None:
    for message in notes:
        note(message)
