"""`tidegate approve`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, Given, takes


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="UNIT...")
@takes(CLUSTER)
@options.text_or_json
def approve(names: tuple[str, ...], **told: Unpack[Given]) -> None:
    """Let UNIT go on, which a rollout holds until somebody approves.

    A rollout that is under way goes on at once. One that has stopped meanwhile goes on when it is
    begun again. An approval is of what the rollout brings: the next change waits again.

    \b
    Examples:
      tidegate approve Application/argocd/shop-prod
      tidegate approve shop-prod shop-prod-eu --context prod
    """
    doing = say_first(f"looking for {', '.join(names)}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_session
    from tidegate.flows.approving import approve_units

    found = in_session(told, lambda it: approve_units(names, it.world, it.target.contexts))
    doing.clear()
    lines = (f"{one.unit} may go on" for one in found)
    options.show(told["output"], found, lines)
