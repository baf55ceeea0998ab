"""`tidegate status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    CLUSTER,
    HEALTH,
    UNIT,
    ClusterOptions,
    UnitOptions,
    policy_of,
    setting_of,
    takes,
    units_of,
)

if TYPE_CHECKING:
    from tidegate.flows.session import Target
    from tidegate.flows.status import ObjectStatus
    from tidegate.model.unit import Unit


class StatusOptions(UnitOptions, ClusterOptions):
    """All that can be said to `tidegate status`."""

    health_rules: Path | None
    output: str


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, CLUSTER, HEALTH)
@options.text_or_json
def status(what: str, **told: Unpack[StatusOptions]) -> None:
    """Show how the objects of DIR stand in the cluster: as wanted or not, healthy or not.

    \b
    Examples:
      tidegate status examples/first
      tidegate status overlays/prod --context prod -o json
    """
    doing = say_first(f"looking at {what}", quiet=told["output"] == "json")
    import asyncio

    import msgspec

    from tidegate.flows.session import Target
    from tidegate.report.status import status_lines

    target = Target(
        kubeconfig=told["kubeconfig"],
        context=told["context"],
        clusters=told["clusters"],
        health_rules=told["health_rules"],
    )
    units = units_of(what, told, policy_of(told), told["clusters"])
    found = asyncio.run(_read(units, target, told))
    doing.clear()
    if told["output"] == "json":
        for one in found:
            click.echo(msgspec.json.encode(one).decode())
        return
    for line in status_lines([(one.ref, one.wave, one.is_synced, one.verdict) for one in found]):
        click.echo(line)


async def _read(units: list[Unit], target: Target, told: StatusOptions) -> list[ObjectStatus]:
    from tidegate.flows.session import open_session
    from tidegate.flows.status import read_status

    async with open_session(target, setting_of(told)) as session:
        return await read_status(units, session)
