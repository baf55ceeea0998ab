"""`tidegate reconcile`: units and sources of Flux now, as `flux reconcile` asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidegate.cli.commands.sync import sync as sync_verb
from tidegate.cli.naming import units_like
from tidegate.cli.nouns import NOUNS, by_noun

if TYPE_CHECKING:
    from tidegate.cli.unit_options import Given
    from tidegate.flows.discover import Family
    from tidegate.flows.named import NamedObject

TITLES = {"kustomization": "Kustomizations", "helmrelease": "HelmReleases", "source": "sources"}
WITH_SOURCE = click.Option(
    ["--with-source"], is_flag=True, help="Have their sources fetched before, by a live Flux."
)


def _make(noun: str) -> click.Command:
    told = f"Have {TITLES[noun]} reconciled now: by a live Flux, else from here."
    return units_like(
        sync_verb,
        kinds=NOUNS[noun],
        told=told,
        name=noun,
        first=_first,
        more=() if noun == "source" else (WITH_SOURCE,),
    )


def _first(named: list[NamedObject], families: tuple[Family, ...], told: Given) -> int | None:
    from tidegate.cli.mastered import reconcile_by_master

    return reconcile_by_master(named, families, told)


@click.group(cls=by_noun(_make, tuple(TITLES)))
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
