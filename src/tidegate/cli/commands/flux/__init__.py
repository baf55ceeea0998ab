"""`tidegate flux`: the subcommands of the Flux command line that Tidegate supports."""

from __future__ import annotations

import click

from tidegate.cli.command import LazyGroup

COMMANDS = {
    "Commands": {
        "get": "List Kustomizations, HelmReleases and sources with their status.",
        "build": "Render Kustomizations and HelmReleases.",
        "diff": "Show what a rollout of Kustomizations and HelmReleases would change.",
        "reconcile": "Reconcile Kustomizations, HelmReleases and sources now.",
        "suspend": "Suspend Kustomizations, HelmReleases and sources.",
        "resume": "Resume Kustomizations, HelmReleases and sources.",
        "tree": "Show the objects of a Kustomization or HelmRelease as a tree.",
        "trace": "Trace an object to its unit, source and file.",
        "events": "Show the Events of Kustomizations, HelmReleases and sources.",
        "logs": "Print logs from the failing or pending pods of a unit.",
    }
}


@click.group(cls=LazyGroup, package=__name__, sections=COMMANDS)
def flux() -> None:
    """Use the commands of `flux` with or without the Flux controllers.

    Tidegate reads Git and the cluster itself. If the controllers run in the cluster, `reconcile`
    asks them to reconcile.

    \b
    Examples:
      alias flux='tidegate flux'
      flux get kustomizations
      flux reconcile kustomization apps --with-source
      flux tree kustomization flux-system
    """
