"""`tidegate journal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, NAMING, Given, takes

if TYPE_CHECKING:
    from tidegate.flows.entering import Found
    from tidegate.flows.journal import Remembered
    from tidegate.flows.session import Session


@click.command()
@click.argument("what", metavar="DIR")
@takes(NAMING, CLUSTER)
@options.text_or_json
def journal(what: str, **told: Unpack[Given]) -> None:
    """Show what the cluster remembers of DIR: its objects, and which gates have opened.

    It is what a rollout goes on from after a kill. It holds names and digests, and no values.

    \b
    Examples:
      tidegate journal examples/first
      tidegate journal overlays/prod --context prod -o json
    """
    doing = say_first(f"looking for the journal of {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.report.journal import journal_document, journal_lines

    found = in_found(pointed_of(what, told), told, _read)
    doing.clear()
    for one in found:
        name, remembered = str(one.unit.id), one.journal if one.secrets else None
        document, lines = journal_document(name, remembered), journal_lines(name, remembered)
        options.show(told["output"], [document], lines)


async def _read(session: Session, found: Found) -> list[Remembered]:
    from tidegate.flows.journal import read_unit_journal

    return [await read_unit_journal(one.unit, session) for one in found.members]
