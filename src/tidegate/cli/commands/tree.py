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

    names, flags["units"] = flags["units"], ()
    return show_tree(names, flags, progress_line, compact=compact)
