"""`tidegate logs`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.naming import HOME, PLACE, called_argument
from tidegate.cli.nouns import UNITS
from tidegate.cli.unit_options import CLUSTER, Given, takes


@click.command()
@called_argument(UNITS)
@takes((PLACE, HOME), CLUSTER, (options.offline, options.repo_map))
@click.option("--tail", type=click.IntRange(min=1), default=20, show_default=True, help="Lines.")
@options.text_or_json
def logs(called: str, tail: int, **told: Unpack[Given]) -> int:
    """Show what the pods have printed last of that which failed or waits of a unit.

    Pods that are well are not asked. NAME is the name of a unit, with its kind before it where two
    are called so: `ks/apps`. Values of Secrets are masked.

    \b
    Examples:
      tidegate logs apps
      tidegate logs app/database --tail 50 --context prod
    """
    from tidegate.cli.telling import show_logs

    doing = say_first("looking at pods", quiet=told["output"] == "json")
    return show_logs(called, tail, told, doing)
