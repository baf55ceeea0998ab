"""`tidegate journal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, NAMING, Told, takes

if TYPE_CHECKING:
    from tidegate.flows.journal import Remembered
    from tidegate.flows.session import Session
    from tidegate.model.unit import Unit


@click.command()
@click.argument("what", metavar="DIR")
@takes(NAMING, CLUSTER)
@options.text_or_json
def journal(what: str, **told: Unpack[Told]) -> None:
    """Show what the cluster remembers of DIR: its objects, and which gates have opened.

    It is what a rollout goes on from after a kill. It holds names and digests, and no values.

    \b
    Examples:
      tidegate journal examples/first
      tidegate journal overlays/prod --context prod -o json
    """
    doing = say_first(f"looking for the journal of {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_session, units_of
    from tidegate.report.journal import journal_document, journal_lines

    units = units_of(what, told)
    found = in_session(told, lambda session: _read(units, session))
    doing.clear()
    for one in found:
        name, remembered = str(one.unit.id), one.journal if one.secrets else None
        document, lines = journal_document(name, remembered), journal_lines(name, remembered)
        options.show(told["output"], [document], lines)


async def _read(units: list[Unit], session: Session) -> list[Remembered]:
    from tidegate.flows.journal import read_unit_journal

    return [await read_unit_journal(unit, session) for unit in units]
