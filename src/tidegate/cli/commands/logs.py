"""`tidegate logs`."""

from __future__ import annotations

from typing import Unpack

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, LOGS, UNITS, Flags, with_options
from tidegate.cli.progress import show_progress


@options.command()
@options.PATH
@with_options((UNITS,), LOGS, CLUSTER, (options.OFFLINE, options.REPO_MAP))
@options.OUTPUT
def logs(tail: int, *, follows: bool, **flags: Unpack[Flags]) -> int:
    """Print the last log lines from the failing or pending pods of units.

    Without --unit, all units of PATH are included. With --follow, Tidegate prints the logs of all
    pods, including those that start later, until they end. Values of Secrets are masked.

    \b
    Examples:
      tidegate logs --context prod
      tidegate logs clusters/prod --unit app/database --tail 50 --context prod
      tidegate logs --unit shop --follow
    """
    progress_line = show_progress("reading logs", quiet=flags["output"] == "json")
    from tidegate.cli.event_output import show_logs

    names, flags["units"] = flags["units"], ()
    return show_logs(names, tail, flags, progress_line, follows=follows)
