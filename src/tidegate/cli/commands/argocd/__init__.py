"""`tidegate argocd`: the subcommands of the Argo CD command line that Tidegate supports."""

from __future__ import annotations

import click

from tidegate.cli.command import LazyGroup

COMMANDS = {
    "Commands": {
        "app": "List, inspect, sync, wait for and delete Applications.",
        "appset": "Print the Applications that ApplicationSets generate.",
    }
}


@click.group(cls=LazyGroup, package=__name__, sections=COMMANDS)
def argocd() -> None:
    """Use the commands of `argocd` without an Argo CD server.

    Tidegate reads Git and the cluster itself. If Argo CD runs in the cluster, `app sync` asks it
    to sync.

    \b
    Examples:
      alias argocd='tidegate argocd'
      argocd app list -l team=shop
      argocd app sync shop
      argocd appset generate argocd/platform.yaml
    """
