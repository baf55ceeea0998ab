"""`tidegate journal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, NAMING, Given, takes

if TYPE_CHECKING:
    from tidegate.flows.entering import Found
    from tidegate.flows.journal import Rebuilt, Remembered
    from tidegate.flows.session import Session


class _ShownOrRebuilt(click.Command):
    """Takes a directory, or the word `rebuild` and one."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        if args[:1] == ["rebuild"]:
            return rebuild.make_context(f"{info_name} rebuild", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command()
@click.argument("what", metavar="DIR", shell_complete=complete_path)
@takes(NAMING, CLUSTER)
@options.text_or_json
def rebuild(what: str, **told: Unpack[Given]) -> None:
    """Write the journal of DIR anew, from the marks on what lives in the cluster.

    It is for a journal that is damaged or gone. Which hooks ran and which gates opened is
    forgotten: hooks run again, and gates are judged again.

    \b
    Examples:
      tidegate journal rebuild examples/first
      tidegate journal rebuild overlays/prod --context prod -o json
    """
    doing = say_first(f"looking for what {what} has brought", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.report.journal import RebuiltDocument, rebuilt_lines
    from tidegate.report.rollout.documents import ObjectName

    found = in_found(pointed_of(what, told), told, _rebuild)
    doing.clear()
    for one in found:
        objects = tuple(map(ObjectName.of, one.objects))
        document = RebuiltDocument(str(one.unit.id), objects, one.unseen)
        options.show(told["output"], [document], rebuilt_lines(document))


async def _rebuild(session: Session, found: Found) -> list[Rebuilt]:
    from tidegate.flows.journal import rebuild_unit_journal

    return [await rebuild_unit_journal(one.unit, session) for one in found.members]


@click.command(cls=_ShownOrRebuilt)
@click.argument("what", metavar="DIR", shell_complete=complete_path)
@takes(NAMING, CLUSTER)
@options.text_or_json
def journal(what: str, **told: Unpack[Given]) -> None:
    """Show what the cluster remembers of DIR: its objects, and which gates have opened.

    It is what a rollout goes on from after a kill. It holds names and digests, and no values.

    \b
    Examples:
      tidegate journal examples/first
      tidegate journal overlays/prod --context prod -o json
      tidegate journal rebuild overlays/prod --context prod
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
