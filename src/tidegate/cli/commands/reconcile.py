"""`tidegate reconcile`: reconciliation of Flux units and sources, like `flux reconcile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidegate.cli.commands.sync import sync as sync_command
from tidegate.cli.unit_arguments import KINDS_BY_NOUN, command_for_units, noun_group

if TYPE_CHECKING:
    from tidegate.cli.options import Flags
    from tidegate.workspace.discovery.unit_tree import UnitTree
    from tidegate.workspace.selection import SelectedResource

NOUN_TITLES = {
    "kustomization": "Kustomizations",
    "helmrelease": "HelmReleases",
    "source": "sources",
}
WITH_SOURCE = click.Option(
    ["--with-source"], is_flag=True, help="Have their sources fetched before, by a live Flux."
)


def _noun_command(noun: str) -> click.Command:
    help_text = f"Have {NOUN_TITLES[noun]} reconciled now: by a live Flux, else from here."
    return command_for_units(
        sync_command,
        kinds=KINDS_BY_NOUN[noun],
        help_text=help_text,
        name=noun,
        delegate=_delegate,
        extra_options=() if noun == "source" else (WITH_SOURCE,),
    )


def _delegate(
    resources: list[SelectedResource], unit_trees: tuple[UnitTree, ...], flags: Flags
) -> int | None:
    from tidegate.cli.delegate import reconcile_by_controller

    return reconcile_by_controller(resources, unit_trees, flags)


@click.group(cls=noun_group(_noun_command, tuple(NOUN_TITLES)))
def reconcile() -> None:
    """Have Kustomizations, HelmReleases and sources reconciled now, as `flux reconcile` does.

    Where their controller is alive, it is asked, and waited for: what it says meanwhile is told.
    There need be none: then they are rolled out from here, with their sources as they are now; for
    a source, the units that take from it.

    \b
    Examples:
      tidegate reconcile kustomization infrastructure --with-source
      tidegate reconcile ks apps --context prod --yes
      tidegate reconcile helmrelease --all
      tidegate reconcile source git platform
    """
