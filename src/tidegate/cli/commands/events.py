"""`tidegate events`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.naming import PLACE
from tidegate.cli.unit_options import CLUSTER, Given, takes


@click.command()
@takes((PLACE,), CLUSTER, (options.offline, options.repo_map))
@click.option("--for", "about", default="", metavar="KIND/NAME", help="Of this object alone.")
@click.option("--types", default="", help="Of these types, such as Warning; with commas between.")
@click.option("-n", "--namespace", "home", default="", help="Of this namespace.")
@options.text_or_json
def events(about: str, types: str, **told: Unpack[Given]) -> int:
    """Show Events about units and sources, as `flux events` does, the newest last.

    With --for of a unit, also those about its source and about all that it brings.

    \b
    Examples:
      tidegate events
      tidegate events --for ks/apps
      tidegate events --for deployment/web -n shop --types Warning
    """
    kind, sign, name = about.partition("/")
    if about and not (kind and sign and name):
        raise click.UsageError("--for takes KIND/NAME")
    from tidegate.cli.telling import show_events

    doing = say_first("looking at Events", quiet=told["output"] == "json")
    return show_events((kind, name), types, told, doing)
