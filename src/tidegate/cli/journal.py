"""Implementation of `status --journal` and `status --rebuild-journal`."""

from __future__ import annotations

from tidegate.cli import options
from tidegate.cli.options import Flags
from tidegate.cli.progress import show_progress
from tidegate.cli.requests import load_request, with_workspace
from tidegate.clusters.journal import (
    RebuiltJournal,
    StoredJournal,
    read_unit_journal,
    rebuild_unit_journal,
)
from tidegate.clusters.session import Session
from tidegate.model.rollouts.documents import ObjectIdentity
from tidegate.report.journal import (
    RebuiltJournalDocument,
    journal_document,
    journal_lines,
    rebuilt_journal_lines,
)
from tidegate.workspace.workspace import Workspace


def show_journals(path: str, flags: Flags) -> int:
    """Print the journal of each unit: its objects, and which gates have opened."""
    progress_line = show_progress(f"reading the journal of {path}", quiet=_is_json(flags))
    journals = with_workspace(load_request(path, flags), flags, _read_journals)
    progress_line.clear()
    for stored in journals:
        name, journal = str(stored.unit.id), stored.journal if stored.secrets else None
        document, lines = journal_document(name, journal), journal_lines(name, journal)
        options.print_result(flags["output"], [document], lines)
    return 0


def rebuild_journals(path: str, flags: Flags) -> int:
    """Rebuild the journal of each unit from the ownership marks of live objects."""
    progress_line = show_progress(f"looking for objects of {path}", quiet=_is_json(flags))
    journals = with_workspace(load_request(path, flags), flags, _rebuild_journals)
    progress_line.clear()
    for rebuilt in journals:
        objects = tuple(map(ObjectIdentity.from_ref, rebuilt.objects))
        document = RebuiltJournalDocument(str(rebuilt.unit.id), objects, rebuilt.unlisted)
        options.print_result(flags["output"], [document], rebuilt_journal_lines(document))
    return 0


async def _read_journals(session: Session, workspace: Workspace) -> list[StoredJournal]:
    return [await read_unit_journal(member.unit, session) for member in workspace.members]


async def _rebuild_journals(session: Session, workspace: Workspace) -> list[RebuiltJournal]:
    return [await rebuild_unit_journal(member.unit, session) for member in workspace.members]


def _is_json(flags: Flags) -> bool:
    return flags["output"] == "json"
