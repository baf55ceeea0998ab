"""`tidegate trace`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_kinds, complete_objects
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import REPOSITORY


@click.command()
@click.argument("kind", metavar="KIND", shell_complete=complete_kinds)
@click.argument(
    "called", metavar="NAME", required=False, default="", shell_complete=complete_objects
)
@with_options((REPOSITORY,), CLUSTER, (options.OFFLINE, options.REPO_MAP))
@click.option("-n", "--namespace", "namespace_filter", default="", help="Of this namespace.")
@options.OUTPUT
def trace(kind: str, called: str, **flags: Unpack[Flags]) -> int:
    """Show where an object comes from: its unit, who brings that, the source, each with its file.

    KIND is written as kubectl takes it. What Git has needs no cluster. With --context it is shown
    what the unit and its source say of themselves, and objects that only live are traced by their
    owners: a Pod by its ReplicaSet, and that by its Deployment.

    \b
    Examples:
      tidegate trace deployment web
      tidegate trace svc/web -n shop
      tidegate trace pod web-5d4f8c-x2x7p -n shop --context prod
    """
    if not called:
        kind, _, called = kind.partition("/")
    if not called:
        raise click.UsageError("give KIND NAME, or KIND/NAME")
    from tidegate.cli.lineage import show_trace

    progress_line = show_progress(f"reading {flags['place']}", quiet=flags["output"] == "json")
    return show_trace(kind, called, flags, progress_line)
