"""One simulated cluster: its API, its open watches, and the controllers that live in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.agenda import Agenda
from tidegate.sandbox.controllers.definitions import keep_definition
from tidegate.sandbox.controllers.garbage import collect
from tidegate.sandbox.controllers.namespaces import keep_namespace
from tidegate.sandbox.controllers.reaction import At, Reaction
from tidegate.sandbox.server.admission import NAMESPACE, NAMESPACES
from tidegate.sandbox.server.refused import Refused
from tidegate.sandbox.server.register import DEFINITIONS
from tidegate.sandbox.server.server import CRDS, Server
from tidegate.sandbox.server.store import Event, Resource, owner_references
from tidegate.sandbox.server.streams import Stream, Streams
from tidegate.sandbox.view import ClusterView
from tidegate.world.calls import Ticket, Watch
from tidegate.world.facts import Bookmark, Change, Changed, Ended, Expired, Fact, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things take here; assumed, and small beside what waits for them."""

    read: Ms = Ms(2)
    write: Ms = Ms(4)
    told: Ms = Ms(1)
    reaction: Ms = Ms(10)
    establishing: Ms = Ms(100)
    bookmark: Ms = MINUTE
    watching: Ms = Ms(300 * SECOND)


LAST_BOOKMARK = Ms(2 * SECOND)
"""So long before a watch is ended in good order, it is told how far it has come."""


class Cluster:
    """Everything of one cluster that happens by itself goes through the agenda."""

    def __init__(
        self,
        seed: str,
        *,
        agenda: Agenda,
        now: Callable[[], Ms],
        tell: Callable[[Fact], None],
        timing: Timing,
    ) -> None:
        self.server = Server(seed=seed, now=now, told=self._changed)
        self.view = ClusterView(self.server)
        self._agenda = agenda
        self._now = now
        self._tell = tell
        self._timing = timing
        self._streams = Streams()
        self._held: dict[Ticket, list[Changed | Bookmark]] = {}
        self._pending: set[tuple[Reaction, Ref]] = set()

    def watch(self, ticket: Ticket, watch: Watch) -> None:
        """Open a stream; what it missed since its version comes first."""
        try:
            entry = self.server.find(watch.selection)
        except Refused as refused:
            self._tell(Ended(ticket, refused.outcome))
            return
        table = self.server.store.table(entry.resource)
        since = int(watch.since) if watch.since.isdigit() else self.server.store.version
        if since < table.forgotten:
            why = f"too old resource version: {since} ({table.forgotten + 1})"
            self._tell(Ended(ticket, Expired(why)))
            return
        stream = Stream(ticket, watch.selection, entry, since=since)
        self._streams.open(stream)
        for event in table.since(since):
            if seen := stream.read(event):
                self._later(self._timing.told, self._delivery(seen))
        self._plan_end(ticket)

    def drop(self, ticket: Ticket, outcome: Refusal | None) -> None:
        """End a stream."""
        self._held.pop(ticket, None)
        if self._streams.close(ticket) is not None:
            self._tell(Ended(ticket, outcome))

    def close(self, ticket: Ticket) -> None:
        """Forget a stream that nobody listens to any more."""
        self._held.pop(ticket, None)
        self._streams.close(ticket)

    def silence(self, ticket: Ticket, span: Ms | None) -> None:
        """Hold back what a stream would tell."""
        self._held.setdefault(ticket, [])
        if span is not None:
            self._later(span, lambda: self._speak(ticket))

    def streams(self) -> list[Stream]:
        return self._streams.all()

    def _speak(self, ticket: Ticket) -> None:
        for fact in self._held.pop(ticket, []):
            self._tell(fact)

    def _plan_end(self, ticket: Ticket) -> None:
        left = self._timing.watching
        self._later(left, lambda: self.drop(ticket, None))
        moment = self._timing.bookmark
        while moment < left - LAST_BOOKMARK:
            self._later(moment, lambda: self._mark(ticket))
            moment = Ms(moment + self._timing.bookmark)
        self._later(Ms(max(0, left - LAST_BOOKMARK)), lambda: self._mark(ticket))

    def _mark(self, ticket: Ticket) -> None:
        stream = self._streams.get(ticket)
        if stream is not None:
            mark = stream.mark(self.server.store.table(stream.resource))
            if mark is not None:
                self._deliver(mark)

    def _delivery(self, fact: Changed | Bookmark) -> Callable[[], None]:
        return lambda: self._deliver(fact)

    def _deliver(self, fact: Changed | Bookmark) -> None:
        if self._streams.get(fact.ticket) is None:
            return
        held = self._held.get(fact.ticket)
        if held is not None:
            held.append(fact)
        else:
            self._tell(fact)

    def _later(self, pause: Ms, deed: Callable[[], None]) -> None:
        self._agenda.add(Ms(self._now() + pause), deed)

    def _changed(self, resource: Resource, event: Event) -> None:
        for seen in self._streams.read(resource, event):
            self._later(self._timing.told, self._delivery(seen))
        for reaction, ref in self._concerned(resource, event):
            self._plan(reaction, ref)
        if resource == CRDS and event.change is Change.DELETED:
            self._end_streams_of(event)

    def _end_streams_of(self, event: Event) -> None:
        kinds = set(self.view.kinds_of(event.stored.body))
        for stream in self._streams.all():
            if stream.selection.kind in kinds:
                ticket = stream.ticket
                self._later(self._timing.told, lambda ticket=ticket: self.drop(ticket, None))

    def _concerned(self, resource: Resource, event: Event) -> Iterator[tuple[Reaction, Ref]]:
        """Who has to look at what after a change."""
        stored = event.stored
        if resource == NAMESPACES:
            yield keep_namespace, stored.ref
        if resource == CRDS:
            yield keep_definition, stored.ref
        if event.change is not Change.DELETED:
            if stored.is_deleting or owner_references(stored.metadata):
                yield collect, stored.ref
            return
        yield from ((collect, own.ref) for own in self.view.owned_by(stored.uid))
        for one in owner_references(stored.metadata):
            kind = Kind.of(str(one.get("apiVersion")), str(one.get("kind")))
            for namespace in {stored.ref.namespace: None, "": None}:
                yield collect, Ref(kind, namespace, str(one.get("name")))
        if stored.ref.namespace:
            yield keep_namespace, Ref(NAMESPACE, "", stored.ref.namespace)
        yield keep_definition, Ref(DEFINITIONS, "", f"{resource.plural}.{resource.group}")

    def _plan(self, reaction: Reaction, ref: Ref, pause: Ms | None = None) -> None:
        if (reaction, ref) in self._pending:
            return
        self._pending.add((reaction, ref))
        usual = self._timing.reaction
        if reaction is keep_definition:
            usual = self._timing.establishing
        self._later(usual if pause is None else pause, lambda: self._react(reaction, ref))

    def _react(self, reaction: Reaction, ref: Ref) -> None:
        self._pending.discard((reaction, ref))
        for wanted in list(reaction(self.view, ref, self._now())):
            if isinstance(wanted, At):
                self._plan(reaction, ref, Ms(wanted.moment - self._now()))
            else:
                self.server.perform(wanted)
