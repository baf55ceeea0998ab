"""Open watches: what a list or a watch is about, who is told of a change, and as what."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidegate.model.labels import SelectorError, read_fields, read_labels
from tidegate.model.reading import part
from tidegate.sandbox.kinds import SELECTABLE
from tidegate.sandbox.server.register import KindEntry
from tidegate.sandbox.server.store import Resource, Stored, Table, Transition
from tidegate.world.calls import Selection, Ticket
from tidegate.world.facts import Bookmark, Change, Changed

Predicate = Callable[[Stored], bool]

EVERYWHERE = frozenset({"metadata.name", "metadata.namespace"})


def selects(selection: Selection) -> Predicate | None:
    """Whether an object belongs; None where every one does."""
    labels, fields = read_labels(selection.labels), read_fields(selection.fields)
    known = EVERYWHERE | SELECTABLE.get(selection.kind, frozenset())
    for one in fields:
        if one.key not in known:
            raise SelectorError(f"field label not supported: {one.key}")
    if not labels and not fields:
        return None
    return lambda stored: (
        all(one.holds(stored.labels) for one in labels)
        and all(one.holds({one.key: _field(stored, one.key)}) for one in fields)
    )


def _field(stored: Stored, path: str) -> str:
    match path:
        case "metadata.name":
            return stored.ref.name
        case "metadata.namespace":
            return stored.ref.namespace
        case _:
            found = part(stored.body, *path.split("."))
            return "" if found is None else str(found)


class Stream:
    """One watch. While it is silent, what it would tell is held back."""

    def __init__(
        self, ticket: Ticket, selection: Selection, entry: KindEntry, *, since: int
    ) -> None:
        self.ticket = ticket
        self.selection = selection
        self.resource = entry.resource
        self.version = since
        self._kind = entry.kind
        self._belongs = selects(selection)

    def read(self, event: Transition) -> Changed | None:
        """What the watcher sees of a change: entering its selection is an addition, leaving it a
        deletion."""
        place = self.selection.namespace
        if place and event.stored.ref.namespace != place:
            return None
        was = event.before is not None and self._selects(event.before)
        now = event.change is not Change.DELETED and self._selects(event.stored)
        if not was and not now:
            return None
        change = Change.MODIFIED if was and now else Change.ADDED if now else Change.DELETED
        return Changed(
            self.ticket, change, self._state(event, change).live(self._kind, self.selection.view)
        )

    def mark(self, table: Table) -> Bookmark | None:
        """How far the watcher has come, if that is farther than it knows."""
        if table.latest <= self.version:
            return None
        self.version = table.latest
        return Bookmark(self.ticket, str(table.latest))

    def _state(self, event: Transition, change: Change) -> Stored:
        if change is Change.DELETED and event.change is not Change.DELETED and event.before:
            before = event.before
            return Stored(before.ref, before.body, before.owners, event.stored.version)
        return event.stored

    def _selects(self, stored: Stored) -> bool:
        return self._belongs is None or self._belongs(stored)


class Streams:
    """The open watches of one cluster, by what they watch."""

    def __init__(self) -> None:
        self._by_resource: dict[Resource, dict[Ticket, Stream]] = {}
        self._by_ticket: dict[Ticket, Stream] = {}

    def open(self, stream: Stream) -> None:
        self._by_ticket[stream.ticket] = stream
        self._by_resource.setdefault(stream.resource, {})[stream.ticket] = stream

    def close(self, ticket: Ticket) -> Stream | None:
        stream = self._by_ticket.pop(ticket, None)
        if stream is not None:
            del self._by_resource[stream.resource][ticket]
        return stream

    def get(self, ticket: Ticket) -> Stream | None:
        return self._by_ticket.get(ticket)

    def all(self) -> list[Stream]:
        return list(self._by_ticket.values())

    def read(self, resource: Resource, event: Transition) -> Iterator[Changed]:
        """What each watcher sees of a change."""
        for stream in self._by_resource.get(resource, {}).values():
            seen = stream.read(event)
            if seen is not None:
                stream.version = event.stored.version
                yield seen
