"""`tidegate reconcile`: one unit of Flux now, as `flux reconcile` asks for it."""

from __future__ import annotations

import click

from tidegate.cli.commands.sync import sync as sync_verb
from tidegate.cli.naming import of_flux


@click.group(cls=of_flux(sync_verb, "Roll out {} now, by what Git has at this moment."))
def reconcile() -> None:
    """Roll out Kustomizations and HelmReleases now, as `flux reconcile` asks for it.

    There need be no Flux: they are rolled out from here, with their sources as they are now. Where
    a Flux is at work, that is noticed, as `sync` does.

    \b
    Examples:
      tidegate reconcile kustomization infrastructure
      tidegate reconcile ks apps --context prod --yes
      tidegate reconcile helmrelease --all
    """
