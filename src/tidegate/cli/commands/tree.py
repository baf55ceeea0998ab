"""`tidegate tree`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, UNITS, Flags, with_options
from tidegate.cli.progress import show_progress


@options.command()
@options.PATH
@with_options((UNITS,), CLUSTER, (options.OFFLINE, options.REPO_MAP))
@click.option("--compact", is_flag=True, help="Show only units.")
@options.OUTPUT
def tree(*, compact: bool, **flags: Unpack[Flags]) -> int:
    """Show the objects of units, and of the units that they create, as a tree.

    Without --unit, the tree starts at the root units of PATH. By default it shows what is in Git.
    With --context it shows the cluster: the inventory of the unit resource, or the journal. Hooks
    and waves are printed next to objects.

    \b
    Examples:
      tidegate tree
      tidegate tree clusters/prod --unit apps --context prod
      tidegate tree . --unit app/shop --compact -o json
    """
    path = flags["path"]
    progress_line = show_progress(f"reading {path}", quiet=flags["output"] == "json")
    from tidegate.cli.lineage import show_tree
    from tidegate.cli.unit_arguments import find_unit_ids, load_unit_trees

    names, flags["units"] = flags["units"], ()
    unit_ids = (
        find_unit_ids(names, flags)
        if names
        else tuple(
            member.unit.id
            for unit_tree in load_unit_trees(path, flags)
            for member in unit_tree.members
            if member.unit.parent is None
        )
    )
    return show_tree(unit_ids, flags, progress_line, compact=compact)
