"""Journal of a unit as text and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.rollouts.documents import ObjectIdentity
from tidegate.model.rollouts.journal import Journal, JournalEntry
from tidegate.model.times import format_rfc3339


class JournalObjectDocument(
    ObjectIdentity, frozen=True, kw_only=True, omit_defaults=True, rename="camel"
):
    """An object of the journal."""

    opened: bool
    """Whether its gate has opened for the manifest that was applied last."""
    hook: bool


class JournalDocument(msgspec.Struct, frozen=True):
    """JSON document of a journal."""

    unit: str
    found: bool
    plan: str = ""
    started: str = ""
    complete: bool = False
    """Whether the last plan of the unit was rolled out completely."""
    objects: tuple[JournalObjectDocument, ...] = ()


def journal_document(unit: str, journal: Journal | None) -> JournalDocument:
    """Return the document of a journal; `journal` is None if there is none."""
    if journal is None:
        return JournalDocument(unit, found=False)
    sorted_entries = sorted(journal.entries.items(), key=lambda item: item[0])
    lines = (
        JournalObjectDocument(
            **msgspec.structs.asdict(ObjectIdentity.from_ref(ref)),
            opened=_is_gate_open(entry),
            hook=entry.hook,
        )
        for ref, entry in sorted_entries
    )
    is_complete = journal.completed_digest == journal.desired_digest != ""
    started = format_rfc3339(journal.started_at)
    return JournalDocument(
        unit,
        found=True,
        plan=journal.plan_digest,
        started=started,
        complete=is_complete,
        objects=tuple(lines),
    )


def journal_lines(unit: str, journal: Journal | None) -> Iterator[str]:
    """Yield a header and a line for each object."""
    document = journal_document(unit, journal)
    if not document.found:
        yield f"no journal for {unit}"
        return
    yield f"unit      {unit}"
    yield f"plan      {document.plan}"
    yield f"started   {document.started}"
    yield f"complete  {'yes' if document.complete else 'no'}"
    yield ""
    width = max([len("object"), *(len(str(item.ref)) for item in document.objects)])
    yield f"{'object':{width}}  gate"
    for item in document.objects:
        gate = "opened" if item.opened else "closed"
        yield f"{item.ref!s:{width}}  {gate}{' (hook)' if item.hook else ''}"


def _is_gate_open(entry: JournalEntry) -> bool:
    return entry.gate_digest == entry.digest != ""


class RebuiltJournalDocument(msgspec.Struct, frozen=True):
    """JSON document of a rebuilt journal."""

    unit: str
    objects: tuple[ObjectIdentity, ...] = ()
    unlisted: tuple[str, ...] = ()
    """Kinds that could not be listed."""


def rebuilt_journal_lines(document: RebuiltJournalDocument) -> Iterator[str]:
    """Yield the objects of a rebuilt journal, and what may be missing."""
    count = len(document.objects)
    yield f"{document.unit}: {count} object{'' if count == 1 else 's'} found"
    yield from (f"  {item.ref}" for item in document.objects)
    if document.unlisted:
        kinds = ", ".join(document.unlisted)
        yield f"  no permission to list {kinds}: the journal does not contain them"
    yield "the next rollout runs hooks and evaluates gates again"
