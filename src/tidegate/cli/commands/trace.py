"""`tidegate trace`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_traced
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress


@options.command()
@click.argument("traced", metavar="KIND/NAME", shell_complete=complete_traced)
@options.PATH
@with_options(CLUSTER, (options.OFFLINE, options.REPO_MAP))
@options.namespace_filter("Namespace of the object.")
@options.OUTPUT
def trace(traced: str, **flags: Unpack[Flags]) -> int:
    """Trace an object of PATH to its unit, parent units, source and file.

    KIND is a kind, plural or short name, as for kubectl. Objects in Git need no cluster. With
    --context, Tidegate also prints the status of the unit and its source, and traces objects that
    are not in Git by their owners: a Pod by its ReplicaSet, which belongs to a Deployment.

    \b
    Examples:
      tidegate trace deployment/web
      tidegate trace svc/web clusters/prod -n shop
      tidegate trace pod/web-5d4f8c-x2x7p -n shop --context prod
    """
    path = flags["path"]
    kind, separator, name = traced.partition("/")
    if not (kind and separator and name):
        raise click.UsageError(f"`{traced}` is not KIND/NAME")
    progress_line = show_progress(f"reading {path}", quiet=flags["output"] == "json")
    from tidegate.cli.lineage import show_trace

    return show_trace(kind, name, flags, progress_line)
