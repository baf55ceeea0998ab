"""`tidegate build`: what a unit of Flux comes to, as `flux build` shows it."""

from __future__ import annotations

import click

from tidegate.cli.commands.render import render as render_verb
from tidegate.cli.naming import of_flux


@click.group(cls=of_flux(render_verb, "Show what {} comes to."))
def build() -> None:
    """Show what Kustomizations and HelmReleases come to, as `flux build` does.

    Values of Secrets, and whatever stood encrypted, are masked.

    \b
    Examples:
      tidegate build kustomization apps
      tidegate build hr postgresql -o names
    """
