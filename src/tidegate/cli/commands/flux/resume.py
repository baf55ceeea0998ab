"""`tidegate flux resume`."""

from __future__ import annotations

from functools import partial

import click

from tidegate.cli.commands.flux.suspend import NOUNS, suspend_command
from tidegate.cli.unit_arguments import noun_group


@click.group(cls=noun_group(partial(suspend_command, suspends=False), NOUNS))
def resume() -> None:
    """Resume suspended Kustomizations, HelmReleases and sources, like `flux resume`.

    \b
    Examples:
      tidegate flux resume kustomization apps
      tidegate flux resume hr --all --wait --timeout 10m --context prod
      tidegate flux resume source git platform
    """
