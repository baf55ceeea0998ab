"""`tidegate events`."""

from __future__ import annotations

from typing import Unpack

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, EVENTS, Flags, with_options
from tidegate.cli.progress import show_progress


@options.command()
@options.PATH
@with_options(EVENTS, CLUSTER, (options.OFFLINE, options.REPO_MAP))
@options.OUTPUT
def events(about: tuple[str, str], types: str, **flags: Unpack[Flags]) -> int:
    """Show Events of the units and sources of PATH, newest last.

    With --for a unit, Events of its source and its objects are shown, too.

    \b
    Examples:
      tidegate events
      tidegate events clusters/prod --for ks/apps --context prod
      tidegate events --for deployment/web -n shop --types Warning
    """
    progress_line = show_progress("reading Events", quiet=flags["output"] == "json")
    from tidegate.cli.event_output import show_events

    return show_events(about, types, flags, progress_line)
