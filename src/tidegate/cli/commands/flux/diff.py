"""`tidegate flux diff`: changes by a rollout of Flux units, like `flux diff`."""

from __future__ import annotations

import click

from tidegate.cli.commands.plan import plan as plan_command
from tidegate.cli.unit_arguments import flux_group


@click.group(cls=flux_group(plan_command, "Show what a rollout of {} would change."))
def diff() -> None:
    """Show what a rollout of Kustomizations and HelmReleases would change, like `flux diff`.

    \b
    Examples:
      tidegate flux diff kustomization apps --context prod
      tidegate flux diff ks apps --context prod --exit-code
    """
