"""`tidegate journal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_path
from tidegate.cli.options import CLUSTER, NAME_AND_NAMESPACE, Flags, with_options
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.clusters.journal import RebuiltJournal, StoredJournal
    from tidegate.clusters.session import Session
    from tidegate.workspace.workspace import Workspace


class _JournalCommand(click.Command):
    """A command that takes a directory, or `rebuild` and a directory."""

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
@with_options(NAME_AND_NAMESPACE, CLUSTER)
@options.OUTPUT
def rebuild(what: str, **flags: Unpack[Flags]) -> None:
    """Write the journal of DIR anew, from the marks on what lives in the cluster.

    It is for a journal that is damaged or gone. Which hooks ran and which gates opened is
    forgotten: hooks run again, and gates are judged again.

    \b
    Examples:
      tidegate journal rebuild examples/first
      tidegate journal rebuild overlays/prod --context prod -o json
    """
    progress_line = show_progress(
        f"looking for what {what} has brought", quiet=flags["output"] == "json"
    )
    from tidegate.cli.requests import load_request, with_workspace
    from tidegate.model.rollouts.documents import ObjectIdentity
    from tidegate.report.journal import RebuiltJournalDocument, rebuilt_journal_lines

    rebuilt_journals = with_workspace(load_request(what, flags), flags, _rebuild_journals)
    progress_line.clear()
    for rebuilt in rebuilt_journals:
        objects = tuple(map(ObjectIdentity.from_ref, rebuilt.objects))
        document = RebuiltJournalDocument(str(rebuilt.unit.id), objects, rebuilt.unlisted)
        options.print_result(flags["output"], [document], rebuilt_journal_lines(document))


async def _rebuild_journals(session: Session, workspace: Workspace) -> list[RebuiltJournal]:
    from tidegate.clusters.journal import rebuild_unit_journal

    return [await rebuild_unit_journal(member.unit, session) for member in workspace.members]


@click.command(cls=_JournalCommand)
@click.argument("what", metavar="DIR", shell_complete=complete_path)
@with_options(NAME_AND_NAMESPACE, CLUSTER)
@options.OUTPUT
def journal(what: str, **flags: Unpack[Flags]) -> None:
    """Show what the cluster remembers of DIR: its objects, and which gates have opened.

    It is what a rollout goes on from after a kill. It holds names and digests, and no values.

    \b
    Examples:
      tidegate journal examples/first
      tidegate journal overlays/prod --context prod -o json
      tidegate journal rebuild overlays/prod --context prod
    """
    progress_line = show_progress(
        f"looking for the journal of {what}", quiet=flags["output"] == "json"
    )
    from tidegate.cli.requests import load_request, with_workspace
    from tidegate.report.journal import journal_document, journal_lines

    stored_journals = with_workspace(load_request(what, flags), flags, _read_journals)
    progress_line.clear()
    for stored in stored_journals:
        name, unit_journal = str(stored.unit.id), stored.journal if stored.secrets else None
        document, lines = journal_document(name, unit_journal), journal_lines(name, unit_journal)
        options.print_result(flags["output"], [document], lines)


async def _read_journals(session: Session, workspace: Workspace) -> list[StoredJournal]:
    from tidegate.clusters.journal import read_unit_journal

    return [await read_unit_journal(member.unit, session) for member in workspace.members]
