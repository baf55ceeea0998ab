"""`tidegate flux trace`: the origin of an object, like `flux trace`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_kinds, complete_objects
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import REPOSITORY


@options.command()
@click.argument("kind", metavar="KIND", shell_complete=complete_kinds)
@click.argument(
    "called", metavar="NAME", required=False, default="", shell_complete=complete_objects
)
@with_options((REPOSITORY,), CLUSTER, (options.OFFLINE, options.REPO_MAP))
@options.namespace_filter("Namespace of the object.")
@options.OUTPUT
def trace(kind: str, called: str, **flags: Unpack[Flags]) -> int:
    """Trace an object to its unit, parent units, source and file, like `flux trace`.

    KIND is a kind, plural or short name, as for kubectl. Objects in Git need no cluster. With
    --context, Tidegate also prints the status of the unit and its source, and traces objects that
    are not in Git by their owners: a Pod by its ReplicaSet, which belongs to a Deployment.

    \b
    Examples:
      tidegate flux trace deployment web
      tidegate flux trace svc/web -n shop
      tidegate flux trace pod web-5d4f8c-x2x7p -n shop --context prod
    """
    if not called:
        kind, _, called = kind.partition("/")
    if not called:
        raise click.UsageError("give KIND NAME or KIND/NAME")
    from tidegate.cli.lineage import show_trace

    progress_line = show_progress(f"reading {flags['path']}", quiet=flags["output"] == "json")
    return show_trace(kind, called, flags, progress_line)
