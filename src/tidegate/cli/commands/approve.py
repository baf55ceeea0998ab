"""`tidegate approve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_names
from tidegate.cli.doing import say_first
from tidegate.cli.nouns import UNITS
from tidegate.cli.unit_options import CLUSTER, Given, takes

if TYPE_CHECKING:
    from tidegate.flows.approving import ApprovedUnit


@click.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="UNIT...", shell_complete=complete_names(UNITS)
)
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
    from tidegate.cli.consent import say_target
    from tidegate.cli.running import run

    found = run(_approve(names, told))
    doing.clear()
    say_target(told)
    lines = (f"{one.unit} may go on" for one in found)
    options.show(told["output"], found, lines)


async def _approve(names: tuple[str, ...], told: Given) -> list[ApprovedUnit]:
    from tidegate.cli.asking import setting_of, target_of
    from tidegate.flows.approving import approve_units
    from tidegate.flows.session import open_session

    async with open_session(target_of(told), setting_of(told)) as session:
        return await approve_units(names, session.world, session.target.contexts)
