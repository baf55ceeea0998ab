"""`tidegate status`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, HEALTH, UNIT, UnitOptions, chosen_of, takes


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, CLUSTER, HEALTH)
@options.text_or_json
def status(
    what: str,
    kubeconfig: str | None,
    context: str | None,
    health_rules: Path | None,
    output: str,
    **told: Unpack[UnitOptions],
) -> None:
    """Show how the objects of DIR stand in the cluster: as wanted or not, healthy or not.

    \b
    Examples:
      tidegate status examples/first
      tidegate status overlays/prod --context prod -o json
    """
    doing = say_first(f"looking at {what}", quiet=output == "json")
    import asyncio

    import msgspec

    from tidegate.flows.status import read_status
    from tidegate.flows.sync import Target
    from tidegate.report.status import status_lines

    target = Target(kubeconfig=kubeconfig, context=context, health_rules=health_rules)
    found = asyncio.run(read_status(chosen_of(what, told), target))
    doing.clear()
    if output == "json":
        for one in found:
            click.echo(msgspec.json.encode(one).decode())
        return
    for line in status_lines([(one.ref, one.wave, one.is_synced, one.verdict) for one in found]):
        click.echo(line)
