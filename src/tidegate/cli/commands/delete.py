"""`tidegate delete`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import (
    DELETE_CONTENTS,
    PLAIN_UNIT,
    ROLLOUT_OUTPUT,
    SELECTION,
    TARGET,
    Flags,
    with_options,
)
from tidegate.cli.output import note, print_line
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.actions.delete import Deletion, Deletions
    from tidegate.cli.progress import ProgressLine
    from tidegate.cli.screen.screen import Screen
    from tidegate.clusters.session import Session
    from tidegate.model.rollouts.event import RolloutOutcome
    from tidegate.workspace.request import LoadRequest

NOTHING_MESSAGE = "nothing to delete"


@options.command()
@options.PATH
@with_options(SELECTION, PLAIN_UNIT, TARGET, DELETE_CONTENTS)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option(
    "--confirm-delete", "confirmed", is_flag=True, help="Also delete objects with `Delete=confirm`."
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Pause Argo CD or Flux for these units.",
)
@with_options(ROLLOUT_OUTPUT)
def delete(**flags: Unpack[Flags]) -> int:
    """Delete the objects of PATH, in the reverse order of their waves.

    Each wave is deleted when the objects of the previous one are gone. PreDelete hooks run first,
    PostDelete hooks last. Objects with `Delete=false` and CRDs are kept. Tidegate lists the objects
    and asks for confirmation.

    \b
    Examples:
      tidegate delete examples/first --context test
      tidegate delete overlays/prod --context prod --yes --confirm-delete
      tidegate delete . --context prod --take-over
    """
    path = flags["path"]
    progress_line = show_progress(f"reading {path}", quiet=flags["output"] == "json")
    from tidegate.cli.confirm import needs_confirmation
    from tidegate.cli.outcome_codes import OUTCOME_CODES
    from tidegate.cli.requests import load_request
    from tidegate.cli.run_async import run_async

    request, must_confirm = load_request(path, flags), needs_confirmation(flags)
    deletion = _run_delete(request, flags, progress_line, must_confirm=must_confirm)
    return OUTCOME_CODES[run_async(deletion)]


def _confirm_deletion(deletions: Deletions) -> None:
    """Show what would be deleted, and ask."""
    from tidegate.cli.confirm import confirm
    from tidegate.model.display import count_noun
    from tidegate.model.finding import warning_from_error
    from tidegate.report.findings import finding_lines
    from tidegate.report.plan import deletion_lines

    retained = [ref for deletion in deletions.units for ref in deletion.remaining]
    unconfirmed = [ref for deletion in deletions.units for ref in deletion.unconfirmed]
    owners = deletions.other_owners
    lines = [*deletion_lines(deletions.plan, retained, unconfirmed, owners)]
    lines += finding_lines(map(warning_from_error, deletions.content_notes))
    count = len(deletions.deleted)
    foreign_note = f" ({len(owners)} of another owner)" if owners else ""
    confirm(lines, f"Delete {count_noun(count, 'object')}{foreign_note}?")


async def _run_delete(
    request: LoadRequest, flags: Flags, progress_line: ProgressLine, *, must_confirm: bool
) -> RolloutOutcome:
    """Delete all units in one rollout, in reverse order of their creation."""
    from tidegate.actions.delete import plan_deletions
    from tidegate.cli.confirm import print_target
    from tidegate.cli.rollout_display import on_screen

    next_activity = f"looking for objects of {request.path_or_url}"
    async with on_screen(request, flags, progress_line, next_activity) as (
        screen,
        session,
        workspace,
    ):
        deletions = await plan_deletions(session, workspace)
        progress_line.clear()
        print_target(flags)
        options.print_findings(deletions.findings)
        if must_confirm and deletions.deleted:
            with screen.default_signals():
                _confirm_deletion(deletions)
        result = await _delete_units(deletions, session, screen, flags)
    if not deletions.is_needed:
        (note if flags["output"] == "json" else print_line)(NOTHING_MESSAGE)
    for deletion in deletions.units:
        _print_retained(deletion)
    return result


async def _delete_units(
    deletions: Deletions, session: Session, screen: Screen, flags: Flags
) -> RolloutOutcome:
    from tidegate.actions.delete import finish_deletion
    from tidegate.cli.rollout_display import show_rollout
    from tidegate.controllers.takeover import report_still_paused, take_over_for_delete
    from tidegate.model.rollouts.event import RolloutOutcome
    from tidegate.releases.history import build_uninstall_history
    from tidegate.rollout.run import RolloutOptions
    from tidegate.workspace.rendering.result import require_deployable

    for deletion in deletions.units if session.targets.simulation is None else ():
        if deletion.runs_hooks:
            require_deployable(deletion.rendered, ignore_sops_mac=False)
    options.print_warnings(deletions.notes)
    result = RolloutOutcome.PASSED
    if deletions.is_needed:
        takeover = await take_over_for_delete(
            deletions.plan_result, session, takes_over=flags["take_over"]
        )
        _print_notes(takeover.notes)
        rollout_options = RolloutOptions(history=build_uninstall_history(deletions.plan))
        result = await show_rollout(screen, session, deletions.plan, rollout_options, flags)
        _print_notes(await report_still_paused(takeover, session))
    if result is RolloutOutcome.PASSED:
        for deletion in deletions.units:
            await finish_deletion(deletion, session.world)
    return result


def _print_notes(notes: Iterable[str]) -> None:
    for message in notes:
        note(message)


def _print_retained(deletion: Deletion) -> None:
    for ref in deletion.remaining:
        hint = "; delete it with `--confirm-delete`" if ref in deletion.unconfirmed else ""
        note(f"{ref} is kept, as its options require{hint}")
