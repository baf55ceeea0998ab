"""`tidegate resume`."""

from __future__ import annotations

from typing import Unpack

from tidegate.cli import options
from tidegate.cli.commands.suspend import run_for_units
from tidegate.cli.options import CLUSTER, UNITS, WAIT, Flags, with_options
from tidegate.cli.unit_arguments import ALL


@options.command()
@options.PATH
@with_options((UNITS, ALL), WAIT, CLUSTER, (options.OFFLINE, options.REPO_MAP))
@options.OUTPUT
def resume(*, every: bool, **flags: Unpack[Flags]) -> int:
    """Resume suspended units and sources of PATH.

    If a controller is running for a single resumed unit, Tidegate waits for it; with --wait, for
    several as well. Otherwise the next `sync` rolls the units out.

    \b
    Examples:
      tidegate resume --unit shop --context prod
      tidegate resume clusters/prod --unit ks/apps --unit source/platform
      tidegate resume --all --wait --timeout 10m --context prod
    """
    path = flags["path"]
    return run_for_units(path, flags, every=every, suspends=False)
