"""`tidegate suspend`, and the subcommands that it shares with `tidegate resume`."""

from __future__ import annotations

from functools import partial

import click

from tidegate.cli.suspend_command import suspend_command
from tidegate.cli.unit_arguments import noun_group


@click.group(cls=noun_group(partial(suspend_command, suspends=True)))
def suspend() -> None:
    """Have nothing done to units and sources, as `flux suspend` does.

    It stands on their own objects, where the cluster has them: a live controller leaves them alone
    then, and so does `sync`. Where it has none, a record of ours stands for it.

    \b
    Examples:
      tidegate suspend kustomization apps
      tidegate suspend hr --all --context prod
      tidegate suspend source git platform
      tidegate suspend application shop
    """
