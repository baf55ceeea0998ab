"""`tidegate flux build`: rendered objects of Flux units, like `flux build`."""

from __future__ import annotations

import click

from tidegate.cli.commands.render import render as render_command
from tidegate.cli.unit_arguments import flux_group


@click.group(cls=flux_group(render_command, "Render {}."))
def build() -> None:
    """Render Kustomizations and HelmReleases, like `flux build`.

    Values of Secrets and decrypted values are masked.

    \b
    Examples:
      tidegate flux build kustomization apps
      tidegate flux build hr postgresql -o names
    """
