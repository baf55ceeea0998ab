"""What is remembered of a unit, as people and as programs read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from tidegate.model.journal import Entry, Journal
from tidegate.model.moment import SECOND, Ms
from tidegate.report.rollout.documents import ObjectName


class JournalLine(ObjectName, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One object: whether its gate has opened for the text that was applied last."""

    opened: bool
    hook: bool


class JournalDocument(msgspec.Struct, frozen=True):
    """A journal for programs. A unit that is `done` was brought as it was meant to be."""

    unit: str
    found: bool
    plan: str = ""
    begun: str = ""
    done: bool = False
    objects: tuple[JournalLine, ...] = ()


def journal_document(unit: str, journal: Journal | None) -> JournalDocument:
    """`journal` is None where nothing is remembered."""
    if journal is None:
        return JournalDocument(unit, found=False)
    ordered = sorted(journal.entries.items(), key=lambda one: one[0])
    lines = (
        JournalLine(
            **msgspec.structs.asdict(ObjectName.of(ref)), opened=_has_opened(entry), hook=entry.hook
        )
        for ref, entry in ordered
    )
    is_done = journal.done == journal.text != ""
    begun = _written(journal.begun)
    return JournalDocument(
        unit, found=True, plan=journal.plan, begun=begun, done=is_done, objects=tuple(lines)
    )


def journal_lines(unit: str, journal: Journal | None) -> Iterator[str]:
    """The head, and a line for each object."""
    told = journal_document(unit, journal)
    if not told.found:
        yield f"nothing is remembered of {unit}"
        return
    yield f"unit   {unit}"
    yield f"plan   {told.plan}"
    yield f"begun  {told.begun}"
    yield f"done   {'yes' if told.done else 'no'}"
    yield ""
    width = max([len("object"), *(len(str(one.ref)) for one in told.objects)])
    yield f"{'object':{width}}  gate"
    for one in told.objects:
        gate = "opened" if one.opened else "closed"
        yield f"{one.ref!s:{width}}  {gate}{' (hook)' if one.hook else ''}"


def _has_opened(entry: Entry) -> bool:
    return entry.opened == entry.digest != ""


def _written(moment: Ms) -> str:
    return f"{datetime.fromtimestamp(moment // SECOND, UTC):%Y-%m-%dT%H:%M:%SZ}"


class RebuiltDocument(msgspec.Struct, frozen=True):
    """A journal that was made anew, for programs; `unseen` are kinds that nobody let us look at."""

    unit: str
    objects: tuple[ObjectName, ...] = ()
    unseen: tuple[str, ...] = ()


def rebuilt_lines(told: RebuiltDocument) -> Iterator[str]:
    """The objects that are remembered again, and what may be missing."""
    count = len(told.objects)
    yield f"{told.unit}: {count} object{'' if count == 1 else 's'} remembered again"
    yield from (f"  {one.ref}" for one in told.objects)
    if told.unseen:
        yield f"  could not look for {', '.join(told.unseen)}: what is there is not remembered"
    yield "which hooks ran and which gates opened is forgotten"
