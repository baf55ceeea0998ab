"""`tidegate delete`."""

from __future__ import annotations

from functools import partial
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
    from tidegate.cli.rollout_display import RolloutTerminal
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


def _confirm(terminal: RolloutTerminal, deletions: Deletions) -> None:
    """Show what would be deleted, and ask."""
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
    terminal.confirm(lines, f"Delete {count_noun(count, 'object')}{foreign_note}?")


async def _run_delete(
    request: LoadRequest, flags: Flags, progress_line: ProgressLine, *, must_confirm: bool
) -> RolloutOutcome:
    """Delete all units in one rollout, in reverse order of their creation."""
    from tidegate.actions.delete import delete_units
    from tidegate.cli.rollout_display import on_screen

    next_activity = f"looking for objects of {request.path_or_url}"
    async with on_screen(request, flags, progress_line, next_activity) as (
        terminal,
        session,
        workspace,
    ):
        confirm = partial(_confirm, terminal) if must_confirm else None
        deletions, outcome = await delete_units(
            workspace, session, terminal, confirm, takes_over=flags["take_over"]
        )
    if not deletions.is_needed:
        (note if flags["output"] == "json" else print_line)(NOTHING_MESSAGE)
    for deletion in deletions.units:
        _print_retained(deletion)
    return outcome


def _print_retained(deletion: Deletion) -> None:
    for ref in deletion.remaining:
        hint = "; delete it with `--confirm-delete`" if ref in deletion.unconfirmed else ""
        note(f"{ref} is kept, as its options require{hint}")
