"""`tidegate flux reconcile`: reconciliation of Flux units and sources, like `flux reconcile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidegate.cli.commands.sync import sync as sync_command
from tidegate.cli.unit_arguments import command_for_units, noun_group
from tidegate.cli.unit_kinds import KINDS_BY_NOUN

if TYPE_CHECKING:
    from tidegate.cli.options import Flags
    from tidegate.workspace.request import UnitSelection

NOUN_TITLES = {
    "kustomization": "Kustomizations",
    "helmrelease": "HelmReleases",
    "source": "sources",
}
WITH_SOURCE = click.Option(
    ["--with-source"], is_flag=True, help="Reconcile their sources first, if Flux is running."
)


def _noun_command(noun: str) -> click.Command:
    help_text = f"Reconcile {NOUN_TITLES[noun]} now: by the Flux controllers, or from here."
    return command_for_units(
        sync_command,
        kinds=KINDS_BY_NOUN[noun],
        help_text=help_text,
        name=noun,
        delegate=_delegate,
        extra_options=() if noun == "source" else (WITH_SOURCE,),
    )


def _delegate(selection: UnitSelection, flags: Flags) -> int | None:
    from tidegate.cli.delegate import reconcile_by_controller

    return reconcile_by_controller(selection, flags)


@click.group(cls=noun_group(_noun_command, tuple(NOUN_TITLES)))
def reconcile() -> None:
    """Reconcile Kustomizations, HelmReleases and sources now, like `flux reconcile`.

    If the Flux controllers are running, Tidegate requests the reconciliation, waits for it and
    prints their status. Otherwise it rolls out the units from here; for a source, the units that
    use it.

    \b
    Examples:
      tidegate flux reconcile kustomization infrastructure --with-source
      tidegate flux reconcile ks apps --context prod --yes
      tidegate flux reconcile helmrelease --all
      tidegate flux reconcile source git platform
    """
