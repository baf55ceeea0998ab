"""`tidegate diff`: what a rollout of a unit of Flux would change, as `flux diff` shows it."""

from __future__ import annotations

import click

from tidegate.cli.commands.plan import plan as plan_verb
from tidegate.cli.naming import of_flux


@click.group(cls=of_flux(plan_verb, "Show what a rollout of {} would change."))
def diff() -> None:
    """Show what a rollout of Kustomizations and HelmReleases would change, as `flux diff` does.

    \b
    Examples:
      tidegate diff kustomization apps --context prod
      tidegate diff ks apps --context prod --exit-code
    """
