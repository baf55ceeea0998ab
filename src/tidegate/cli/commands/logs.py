"""`tidegate logs`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_units
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import (
    NAMESPACE_FILTER,
    NOUN_ALIASES,
    REPOSITORY,
    UNIT_KINDS_BY_NOUN,
)


@click.command()
@click.argument(
    "called", metavar="NAME", shell_complete=complete_units(UNIT_KINDS_BY_NOUN, NOUN_ALIASES)
)
@with_options((REPOSITORY, NAMESPACE_FILTER), CLUSTER, (options.OFFLINE, options.REPO_MAP))
@click.option("--tail", type=click.IntRange(min=1), default=20, show_default=True, help="Lines.")
@click.option("-f", "--follow", "follows", is_flag=True, help="Of all its pods, as they print.")
@options.TIMEOUT
@options.OUTPUT
def logs(called: str, tail: int, follows: bool, **flags: Unpack[Flags]) -> int:  # noqa: FBT001 - click's way
    """Show what the pods have printed last of that which failed or waits of a unit.

    Pods that are well are not asked. With --follow all are, those that come later, too, until all
    of them have ended or are gone, or somebody interrupts: each line is told when it is printed.

    NAME is the name of a unit, with its kind before it where two are called so: `ks/apps`. Values
    of Secrets are masked.

    \b
    Examples:
      tidegate logs apps
      tidegate logs app/database --tail 50 --context prod
      tidegate logs shop --follow
    """
    from tidegate.cli.event_output import show_logs

    progress_line = show_progress("looking at pods", quiet=flags["output"] == "json")
    return show_logs(called, tail, flags, progress_line, follows=follows)
