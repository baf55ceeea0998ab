"""`tidegate build`: rendered objects of Flux units, like `flux build`."""

from __future__ import annotations

import click

from tidegate.cli.commands.render import render as render_command
from tidegate.cli.unit_arguments import flux_group


@click.group(cls=flux_group(render_command, "Show what {} comes to."))
def build() -> None:
    """Show what Kustomizations and HelmReleases come to, as `flux build` does.

    Values of Secrets, and whatever stood encrypted, are masked.

    \b
    Examples:
      tidegate build kustomization apps
      tidegate build hr postgresql -o names
    """
