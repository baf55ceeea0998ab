"""`tidegate suspend`, and what it shares with `tidegate resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, UNITS, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import ALL, find_resources, split_unit_argument
from tidegate.cli.unit_kinds import KINDS_BY_NOUN

if TYPE_CHECKING:
    from tidegate.workspace.discovery.unit_tree import UnitTree
    from tidegate.workspace.selection import SelectedResource

SUSPENDABLE_KINDS = tuple(kind for kinds in KINDS_BY_NOUN.values() for kind in kinds)


@options.command()
@options.PATH
@with_options((UNITS, ALL), CLUSTER, (options.OFFLINE, options.REPO_MAP))
@options.OUTPUT
def suspend(*, every: bool, **flags: Unpack[Flags]) -> int:
    """Suspend units and sources of PATH: neither a running controller nor `sync` changes them.

    A suspension is stored in the Application, Kustomization, HelmRelease or source in the cluster.
    If the cluster does not have it, Tidegate stores a record that `sync` respects.

    \b
    Examples:
      tidegate suspend --unit shop --context prod
      tidegate suspend clusters/prod --unit ks/apps --unit source/platform
      tidegate suspend --all --context prod
    """
    path = flags["path"]
    return run_for_units(path, flags, every=every, suspends=True)


def run_for_units(path: str, flags: Flags, *, every: bool, suspends: bool) -> int:
    """Suspend or resume the units and sources that --unit or --all select."""
    names, flags["units"] = flags["units"], ()
    if bool(names) == every:
        raise click.UsageError("give --unit UNIT or --all")
    progress_line = show_progress(f"reading {path}", quiet=flags["output"] == "json")
    from tidegate.cli.suspend import suspend_or_resume

    def find(unit_trees: tuple[UnitTree, ...]) -> list[SelectedResource]:
        if every:
            return find_resources(unit_trees, SUSPENDABLE_KINDS, ())
        selected = {}
        for argument in names:
            kinds, name = split_unit_argument(argument, SUSPENDABLE_KINDS)
            for resource in find_resources(unit_trees, kinds, (name,)):
                selected[resource.id] = resource
        return [*selected.values()]

    return suspend_or_resume(find, flags, progress_line, suspends=suspends)
