"""`tidegate logs`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_units
from tidegate.cli.doing import say_first
from tidegate.cli.naming import HOME, PLACE
from tidegate.cli.nouns import ALIASES, UNIT_NOUNS
from tidegate.cli.unit_options import CLUSTER, Given, takes


@click.command()
@click.argument("called", metavar="NAME", shell_complete=complete_units(UNIT_NOUNS, ALIASES))
@takes((PLACE, HOME), CLUSTER, (options.offline, options.repo_map))
@click.option("--tail", type=click.IntRange(min=1), default=20, show_default=True, help="Lines.")
@click.option("-f", "--follow", "follows", is_flag=True, help="Of all its pods, as they print.")
@options.timeout
@options.text_or_json
def logs(called: str, tail: int, follows: bool, **told: Unpack[Given]) -> int:  # noqa: FBT001 - click's way
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
    from tidegate.cli.telling import show_logs

    doing = say_first("looking at pods", quiet=told["output"] == "json")
    return show_logs(called, tail, told, doing, follows=follows)
