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
    EXISTING_FILE,
    EMPTY_CLUSTER,
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
    from tidegate.inspection.diff import Preview
    from tidegate.inspection.saved_plan import SavedPlan
    from tidegate.model.rollouts.event import RolloutOutcome
    from tidegate.model.rollouts.rollout_progress import RolloutProgress
    from tidegate.planning.plan import PlanResult, PreparedRollout
    from tidegate.rollout.record import RunRecorder
    from tidegate.rollout.run import RolloutOptions
    from tidegate.workspace.request import LoadRequest
    from tidegate.workspace.workspace import Workspace


@click.command()
@click.argument("what", metavar="PATH", default="", shell_complete=complete_path)
@with_options(SELECTION, PLAIN_UNIT, TARGET, EMPTY_CLUSTER, PRUNE, DELETE_CONTENTS)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="GROUP:KIND:[NAMESPACE/]NAME",
    help="Only this object, and no hooks; `*` is any, `!` before it leaves out; may be repeated.",
)
@click.option(
    "--plan",
    type=EXISTING_FILE,
    help="Run exactly what `plan --save` wrote into this file, or refuse; PATH is in it.",
)
@click.option(
    "--force", is_flag=True, help="Delete and make again what cannot be changed as it lives."
)
@click.option("--force-hooks", is_flag=True, help="Run hooks though nothing has changed.")
@click.option("--yes", is_flag=True, help="Do not ask before a real cluster is changed.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--preflight",
    type=click.Choice(["auto", "local", "server"]),
    default="auto",
    show_default=True,
    help="What the server is asked about before the first write: what rules here leave open, only "
    "what webhooks, policies and CRDs have a word in, or every object.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["stop", "continue"]),
    default="stop",
    show_default=True,
    help="What becomes of what lies behind a failed step.",
)
@click.option(
    "--force-owner", is_flag=True, help="Take over a name that another directory had until now."
)
@click.option(
    "--skip-broken", is_flag=True, help="Leave out a unit with a fault, and what waits for it."
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Hold the controllers of Argo CD or Flux that bring these units, and roll out instead.",
)
@click.option("--hand-back", is_flag=True, help="Let them go again when the rollout has passed.")
@click.option(
    "--ignore-sops-mac", is_flag=True, help="Apply encrypted files that were changed by hand."
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write down all that happens, as JSON lines: `tidegate verify` reads it.",
)
@with_options(APPROVE, ROLLOUT_OUTPUT)
def sync(what: str, **flags: Unpack[Flags]) -> int:
    """Roll out PATH wave by wave; each gate opens when what was applied is healthy.

    PATH is a repository of Argo CD's or Flux's, or of both, a directory of manifests, a Helm chart
    or a Kustomize overlay. What is there already and as wanted is left alone. Ctrl-C stops cleanly;
    the same command goes on where it stopped.

    \b
    Examples:
      tidegate sync examples/first --sandbox
      tidegate sync overlays/prod --context prod --prune
      tidegate sync charts/web --namespace web --sync-option CreateNamespace=true
      tidegate sync overlays/prod --cluster east=prod-east --cluster west=prod-west
      tidegate sync overlays/prod --resource apps:Deployment:web --resource ':Service:web'
      tidegate sync . --context prod --take-over --hand-back
      tidegate sync --plan prod.plan --context prod --yes
      tidegate sync overlays/prod --context prod --record run.jsonl
    """
    progress_line = show_progress(f"reading {what}", quiet=flags["output"] == "json")
    from tidegate.cli.confirm import needs_confirmation, print_target
    from tidegate.cli.preview import print_previews
    from tidegate.cli.requests import load_request, with_workspace
    from tidegate.cli.run_async import run_async
    from tidegate.inspection.diff import preview_workspace
    from tidegate.inspection.saved_plan import read_plan
    from tidegate.planning.plan import partial_prune_error

    resources, digest = flags["resources"], ""
    if flags["prune"] and resources:
        raise partial_prune_error()
    if flags["plan"] and resources:
        raise click.UsageError("--resource does not go with --plan, which is all of a plan")
    saved = read_plan(flags["plan"]) if flags["plan"] else None
    what = what or (saved.source if saved else "")
    request = load_request(what, flags)
    recorder = None if flags["dry_run"] else _open_record(flags)
    must_confirm = needs_confirmation(flags)
    if must_confirm or flags["dry_run"]:
        progress_line.update(f"comparing {what} with what lives")
        workspace, previews = with_workspace(
            request, flags, lambda session, opened: preview_workspace(session, opened, resources)
        )
        progress_line.clear()
        if flags["dry_run"]:
            return print_previews(workspace, previews, flags)
        print_target(flags)
        digest = _confirm_previews(previews)
    return run_async(
        _run_sync(request, flags, progress_line, _ConfirmedPlan(digest, saved, recorder))
    )


class _ConfirmedPlan(NamedTuple):
    """The confirmed or saved plan that the rollout must match, and the run recorder."""

    digest: str = ""
    saved: SavedPlan | None = None
    recorder: RunRecorder | None = None

    async def check_prepared(
        self, prepared: PreparedRollout, workspace: Workspace, session: Session
    ) -> PreparedRollout:
        """Return the prepared rollout; raise if it differs from the confirmed plan."""
        from tidegate.actions.sync import refuse_changed_plan
        from tidegate.inspection.saved_plan import with_saved_plan

        if self.saved is not None:
            prepared = await with_saved_plan(self.saved, prepared, workspace, session)
        refuse_changed_plan(prepared.plan_result.plan, self.digest)
        return prepared

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


def _confirm_previews(previews: list[Preview]) -> str:
    """Ask the user to confirm the plans, and return their digests.

    Raises if the user declines.
    """
    from tidegate.cli.confirm import confirm
    from tidegate.model.finding import warning_from_error
    from tidegate.report.findings import finding_lines
    from tidegate.report.plan import summary_line

    if any(preview.has_changes for preview in previews):
        lines = [summary_line(preview.differences) for preview in previews]
        lines += finding_lines(
            warning_from_error(content_note)
            for preview in previews
            for content_note in preview.content_notes
        )
        confirm(lines, "Roll out?")
    return " ".join(preview.desired_plan.digest for preview in previews)


async def _run_sync(
    request: LoadRequest, flags: Flags, progress_line: ProgressLine, confirmed: _ConfirmedPlan
) -> int:
    from msgspec.structs import replace

    from tidegate.actions.sync import prepare_rollout, refuse_unsafe
    from tidegate.cli.confirm import print_target
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
            workspace, session, flags["resources"], keep_going=keep_going
        )
        prepared = await confirmed.check_prepared(prepared, workspace, session)
        progress_line.clear()
        if not confirmed.digest:
            print_target(flags)
        options.print_findings(prepared.findings)
        workspace.require_no_errors(prepared.plan_result.findings, keep_going=keep_going)
        left_out = {**prepared.left_out}
        if session.targets.simulation is None:
            ignore_macs = flags["ignore_sops_mac"]
            left_out = refuse_unsafe(prepared, keep_going=keep_going, ignore_sops_mac=ignore_macs)
        options.print_warnings(prepared.plan_result.notes)
        rollout_options = replace(
            rollout_options,
            excluded=left_out,
            approved=find_approved_units(flags["approved"], workspace.members),
        )
        sync_request = _SyncRequest(request, flags, confirmed.recorder_for(workspace, session))
        result = await _run_rollout(screen, session, prepared, rollout_options, sync_request)
    _print_skipped(screen.progress)
    confirmed.check_recorder(result)
    return max(OUTCOME_CODES[result], _print_incomplete(workspace, session))


def _print_incomplete(workspace: Workspace, session: Session) -> int:
    """Print what could not be fetched, and return the exit code; 0 for a real cluster."""
    from tidegate.workspace.completeness import incomplete_finding

    if session.targets.simulation is None:
        return 0
    return options.print_findings(incomplete_finding(workspace.members, workspace.findings))


def _print_skipped(progress: RolloutProgress) -> None:
    _print_notes(
        f"{ref} asks for confirmation; `--confirm-prune` prunes it"
        for ref in progress.unconfirmed_prunes
    )
    _print_notes(
        f"{ref} asks for being left alone: it is not written" for ref in progress.unmanaged
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

    if not flags["resources"]:  # of a part nobody can say how the whole is
        statuses = await build_statuses(takeover.plan_result, session, prepared.fault_findings)
        rollout_options = replace(
            rollout_options,
            statuses=statuses,
            history=await build_history(takeover.plan_result, session),
        )
    if flags["plan"] is None and can_plan_change(
        planned.plan, session
    ):  # a saved one is run as it is
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
        _print_notes((f"{takeover.paused_message}; `--hand-back` lets them go",))


def _print_notes(notes: Iterable[str]) -> None:
    for message in notes:
        note(message)
