"""`tidegate events`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import REPOSITORY


@click.command()
@with_options((REPOSITORY,), CLUSTER, (options.OFFLINE, options.REPO_MAP))
@click.option("--for", "about", default="", metavar="KIND/NAME", help="Of this object alone.")
@click.option("--types", default="", help="Of these types, such as Warning; with commas between.")
@click.option("-n", "--namespace", "namespace_filter", default="", help="Of this namespace.")
@options.OUTPUT
def events(about: str, types: str, **flags: Unpack[Flags]) -> int:
    """Show Events about units and sources, as `flux events` does, the newest last.

    With --for of a unit, also those about its source and about all that it brings.

    \b
    Examples:
      tidegate events
      tidegate events --for ks/apps
      tidegate events --for deployment/web -n shop --types Warning
    """
    kind, separator, name = about.partition("/")
    if about and not (kind and separator and name):
        raise click.UsageError("--for takes KIND/NAME")
    from tidegate.cli.event_output import show_events

    progress_line = show_progress("looking at Events", quiet=flags["output"] == "json")
    return show_events((kind, name), types, flags, progress_line)
