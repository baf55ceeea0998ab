"""`tidegate approve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_names
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_kinds import UNIT_KINDS

if TYPE_CHECKING:
    from tidegate.actions.approve import ApprovedUnit


@options.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="UNIT...", shell_complete=complete_names(UNIT_KINDS)
)
@with_options(CLUSTER)
@options.OUTPUT
def approve(names: tuple[str, ...], **flags: Unpack[Flags]) -> None:
    """Approve units that wait for approval in a rollout.

    A running rollout continues at once; a stopped one continues when it is started again. The
    approval is for this version of the unit: the next change waits for approval again.

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
    lines = (f"approved {unit_approval.unit}" for unit_approval in approved)
    options.print_result(flags["output"], approved, lines)


async def _approve_units(names: tuple[str, ...], flags: Flags) -> list[ApprovedUnit]:
    from tidegate.actions.approve import approve_units
    from tidegate.cli.requests import cluster_targets, render_settings
    from tidegate.clusters.session import open_session

    async with open_session(cluster_targets(flags), render_settings(flags)) as session:
        return await approve_units(names, session.world, session.targets.contexts)
