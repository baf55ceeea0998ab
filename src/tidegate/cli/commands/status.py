"""`tidegate status`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, HEALTH, NARROWING, UNIT, Told, takes


@click.command()
@click.argument("what", metavar="PATH")
@takes(NARROWING, UNIT, CLUSTER, HEALTH)
@options.text_or_json
def status(what: str, **told: Unpack[Told]) -> None:
    """Show how the objects of PATH stand in the cluster: as wanted or not, healthy or not.

    \b
    Examples:
      tidegate status examples/first
      tidegate status overlays/prod --context prod -o json
    """
    doing = say_first(f"looking at {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.flows.status import read_status
    from tidegate.report.status import status_lines

    pointed = pointed_of(what, told)
    found = in_found(pointed, told, lambda session, found: read_status(found.one, session))
    doing.clear()
    rows = [(one.ref, one.wave, one.is_synced, one.verdict) for one in found]
    options.show(told["output"], found, status_lines(rows))
