"""`tidegate approve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_names
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import UNIT_KINDS

if TYPE_CHECKING:
    from tidegate.actions.approve import ApprovedUnit


@click.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="UNIT...", shell_complete=complete_names(UNIT_KINDS)
)
@with_options(CLUSTER)
@options.OUTPUT
def approve(names: tuple[str, ...], **flags: Unpack[Flags]) -> None:
    """Let UNIT go on, which a rollout holds until somebody approves.

    A rollout that is under way goes on at once. One that has stopped meanwhile goes on when it is
    begun again. An approval is of what the rollout brings: the next change waits again.

    \b
    Examples:
      tidegate approve Application/argocd/shop-prod
      tidegate approve shop-prod shop-prod-eu --context prod
    """
    progress_line = show_progress(
        f"looking for {', '.join(names)}", quiet=flags["output"] == "json"
    )
    from tidegate.cli.confirm import print_target
    from tidegate.cli.run_async import run_async

    approved = run_async(_approve_units(names, flags))
    progress_line.clear()
    print_target(flags)
    lines = (f"{unit_approval.unit} may go on" for unit_approval in approved)
    options.print_result(flags["output"], approved, lines)


async def _approve_units(names: tuple[str, ...], flags: Flags) -> list[ApprovedUnit]:
    from tidegate.actions.approve import approve_units
    from tidegate.cli.requests import cluster_targets, render_settings
    from tidegate.clusters.session import open_session

    async with open_session(cluster_targets(flags), render_settings(flags)) as session:
        return await approve_units(names, session.world, session.targets.contexts)
