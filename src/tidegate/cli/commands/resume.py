"""`tidegate resume`."""

from __future__ import annotations

from functools import partial

import click

from tidegate.cli.suspend_command import suspend_command
from tidegate.cli.unit_arguments import noun_group


@click.group(cls=noun_group(partial(suspend_command, suspends=False)))
def resume() -> None:
    """Have units and sources taken up again that somebody has suspended, as `flux resume` does.

    A live controller goes on with them, and is waited for: where one is named always, where several
    are with --wait. Without one, the next `sync` goes on, or `reconcile` now.

    \b
    Examples:
      tidegate resume kustomization apps
      tidegate resume hr --all --wait --timeout 10m --context prod
      tidegate resume source git platform
      tidegate resume application shop
    """
