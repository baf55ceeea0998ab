"""`tidegate journal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, NAMING, ClusterOptions, takes

if TYPE_CHECKING:
    from tidegate.flows.journal import Remembered
    from tidegate.flows.session import Target
    from tidegate.model.unit import Unit


class JournalOptions(ClusterOptions):
    """All that can be said to `tidegate journal`."""

    name: str
    namespace: str
    output: str


@click.command()
@click.argument("what", metavar="DIR")
@takes(NAMING, CLUSTER)
@options.text_or_json
def journal(what: str, **told: Unpack[JournalOptions]) -> None:
    """Show what the cluster remembers of DIR: its objects, and which gates have opened.

    It is what a rollout goes on from after a kill. It holds names and digests, and no values.

    \b
    Examples:
      tidegate journal examples/first
      tidegate journal overlays/prod --context prod -o json
    """
    doing = say_first(f"looking for the journal of {what}", quiet=told["output"] == "json")
    import asyncio

    import msgspec

    from tidegate.flows.pointing import point_at
    from tidegate.flows.session import Target
    from tidegate.report.journal import journal_document, journal_lines

    clusters = told["clusters"]
    target = Target(kubeconfig=told["kubeconfig"], context=told["context"], clusters=clusters)
    units = [
        point_at(what, cluster=name, name=told["name"], namespace=told["namespace"])
        for name, _ in clusters or (("", ""),)
    ]
    found = asyncio.run(_read(units, target))
    doing.clear()
    for one in found:
        name, remembered = str(one.unit.id), one.journal if one.secrets else None
        if told["output"] == "json":
            click.echo(msgspec.json.encode(journal_document(name, remembered)).decode())
            continue
        for line in journal_lines(name, remembered):
            click.echo(line)


async def _read(units: list[Unit], target: Target) -> list[Remembered]:
    from tidegate.flows.journal import read_unit_journal
    from tidegate.flows.render import own_setting
    from tidegate.flows.session import open_session

    async with open_session(target, own_setting()) as session:
        return [await read_unit_journal(unit, session) for unit in units]
