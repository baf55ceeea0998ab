"""`tidegate flux logs`: logs of the pods of a Flux unit."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_units
from tidegate.cli.options import CLUSTER, LOGS, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import NAMESPACE_FILTER, REPOSITORY
from tidegate.cli.unit_kinds import NOUN_ALIASES, UNIT_KINDS_BY_NOUN


@options.command()
@click.argument(
    "called", metavar="NAME", shell_complete=complete_units(UNIT_KINDS_BY_NOUN, NOUN_ALIASES)
)
@with_options((REPOSITORY, NAMESPACE_FILTER), LOGS, CLUSTER, (options.OFFLINE, options.REPO_MAP))
@options.OUTPUT
def logs(called: str, tail: int, *, follows: bool, **flags: Unpack[Flags]) -> int:
    """Print the last log lines from the failing or pending pods of a unit.

    NAME is the name of a unit; write `ks/apps` or `hr/apps` if two kinds share a name. With
    --follow, Tidegate prints the logs of all its pods until they end. Values of Secrets are masked.

    \b
    Examples:
      tidegate flux logs apps
      tidegate flux logs hr/database --tail 50 --context prod
      tidegate flux logs apps --follow
    """
    progress_line = show_progress("reading logs", quiet=flags["output"] == "json")
    from tidegate.cli.event_output import show_logs

    return show_logs((called,), tail, flags, progress_line, follows=follows)
