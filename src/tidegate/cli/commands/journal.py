"""`tidegate journal`."""

from __future__ import annotations

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, NAMING, takes


@click.command()
@click.argument("what", metavar="DIR")
@takes(NAMING, CLUSTER)
@options.text_or_json
def journal(
    what: str, name: str, namespace: str, kubeconfig: str | None, context: str | None, output: str
) -> None:
    """Show what the cluster remembers of DIR: its objects, and which gates have opened.

    It is what a rollout goes on from after a kill. It holds names and digests, and no values.

    \b
    Examples:
      tidegate journal examples/first
      tidegate journal overlays/prod --context prod -o json
    """
    doing = say_first(f"looking for the journal of {what}", quiet=output == "json")
    import asyncio

    import msgspec

    from tidegate.flows.journal import read_journal_on
    from tidegate.flows.render import Wanted
    from tidegate.flows.sync import Target
    from tidegate.flows.units import Chosen
    from tidegate.report.journal import journal_document, journal_lines

    unit = Chosen(wanted=Wanted(what=what, name=name, namespace=namespace)).unit
    target = Target(kubeconfig=kubeconfig, context=context)
    found = asyncio.run(read_journal_on(unit, target))
    doing.clear()
    remembered = found.journal if found.secrets else None
    if output == "json":
        click.echo(msgspec.json.encode(journal_document(unit.name, remembered)).decode())
        return
    for line in journal_lines(unit.name, remembered):
        click.echo(line)
