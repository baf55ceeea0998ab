"""One simulated cluster: its API, its open watches, and the controllers that live in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.agenda import Agenda
from tidegate.sandbox.controllers.foundations import API_CONTROLLERS, CUSTOM_KINDS
from tidegate.sandbox.controllers.reaction import At, Controller, Print, roster
from tidegate.sandbox.kinds import DEFINITIONS
from tidegate.sandbox.server.lifecycle import CRDS
from tidegate.sandbox.server.register import RefusedCall, resource_of
from tidegate.sandbox.server.server import Server
from tidegate.sandbox.server.store import Resource, Stored, Transition
from tidegate.sandbox.server.streams import Stream, Streams
from tidegate.world.calls import Ticket, Watch, Write
from tidegate.world.facts import Bookmark, Change, Changed, Ended, Expired, Fact, Outcome, Refusal


class ClusterView:
    """Reads a server's store; sees each change as soon as it is made."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def get(self, ref: Ref) -> Stored | None:
        entry = self._server.register.find(ref.kind)
        if entry is None:
            return None
        return self._server.store.get(entry.resource, ref.namespace, ref.name)

    def all_of(self, kind: Kind, namespace: str = "") -> list[Stored]:
        entry = self._server.register.find(kind)
        return self._server.store.table(entry.resource).rows(namespace) if entry else []

    def inside(self, namespace: str) -> list[Stored]:
        return [
            stored
            for _, table in self._server.store.tables()
            if namespace in table.objects
            for stored in table.rows(namespace)
        ]

    def owned_by(self, uid: str) -> list[Stored]:
        store = self._server.store
        found = (store.get(kept, ref.namespace, ref.name) for kept, ref in store.owned(uid))
        return [stored for stored in found if stored is not None]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take here; assumed, and small beside what waits for them."""

    read: Ms = Ms(2)
    write: Ms = Ms(4)
    told: Ms = Ms(1)
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
        controllers: tuple[Controller, ...] = API_CONTROLLERS,
    ) -> None:
        self.server = Server(seed=seed, now=now, told=self._changed)
        self.view = ClusterView(self.server)
        self._agenda = agenda
        self._now = now
        self._tell = tell
        self._timing = timing
        self._streams = Streams()
        self._held: dict[Ticket, list[Changed | Bookmark]] = {}
        self._pending: set[tuple[str, Ref]] = set()
        self._reminders: dict[tuple[str, Ref], Ms] = {}
        self._asked_about = roster(controllers)

    def give(self, write: Write) -> Outcome:
        """Put in what was there before; a CRD's kinds are served at once."""
        outcome = self.server.perform(write)
        if write.ref.kind == DEFINITIONS:
            self._look(CUSTOM_KINDS, write.ref)
        return outcome

    def watch(self, ticket: Ticket, watch: Watch) -> None:
        """Open a stream; what it missed since its version comes first."""
        try:
            entry = self.server.find(watch.selection)
        except RefusedCall as refused:
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
                self._later(self._timing.told, partial(self._deliver, seen))
        self._plan_end(ticket, watch.lasting or self._timing.watching)

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
            self._later(span, partial(self._speak, ticket))

    def streams(self) -> list[Stream]:
        return self._streams.all()

    def _speak(self, ticket: Ticket) -> None:
        for fact in self._held.pop(ticket, []):
            self._tell(fact)

    def _plan_end(self, ticket: Ticket, left: Ms) -> None:
        self._later(left, partial(self.drop, ticket, None))
        moment = self._timing.bookmark
        while moment < left - LAST_BOOKMARK:
            self._later(moment, partial(self._mark, ticket))
            moment = Ms(moment + self._timing.bookmark)
        self._later(Ms(max(0, left - LAST_BOOKMARK)), partial(self._mark, ticket))

    def _mark(self, ticket: Ticket) -> None:
        stream = self._streams.get(ticket)
        if stream is not None:
            mark = stream.mark(self.server.store.table(stream.resource))
            if mark is not None:
                self._deliver(mark)

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

    def _changed(self, resource: Resource, event: Transition) -> None:
        for seen in self._streams.read(resource, event):
            self._later(self._timing.told, partial(self._deliver, seen))
        for controller in self._asked_about(event.stored.ref.kind.name):
            for ref in controller.concerns(self.view, event):
                self._plan(controller, ref, controller.delay)
        if resource == CRDS and event.change is Change.DELETED:
            self._end_streams_of(resource_of(event.stored.body))

    def _end_streams_of(self, resource: Resource) -> None:
        for stream in self._streams.all():
            if stream.resource == resource:
                self._later(self._timing.told, partial(self.drop, stream.ticket, None))

    def _plan(self, controller: Controller, ref: Ref, pause: Ms) -> None:
        key = (controller.name, ref)
        if key not in self._pending:
            self._pending.add(key)
            self._later(pause, partial(self._look, controller, ref))

    def _look(self, controller: Controller, ref: Ref) -> None:
        """Let a controller look at one of its objects, and do what it says."""
        self._pending.discard((controller.name, ref))
        looking = controller.react(self.view, ref, self._now())
        outcome: Outcome | None = None
        while True:
            try:
                wanted = looking.send(outcome)
            except StopIteration:
                return
            outcome = None
            if isinstance(wanted, At):
                self._remind(controller, ref, max(wanted.moment, Ms(self._now() + 1)))
            elif isinstance(wanted, Print):
                self.server.printed.add(*wanted)
            else:
                outcome = self.server.write(wanted)

    def _remind(self, controller: Controller, ref: Ref, moment: Ms) -> None:
        """One reminder for each object: the earliest. Whoever looks then can ask for the next."""
        key = (controller.name, ref)
        planned = self._reminders.get(key)
        if planned is not None and self._now() <= planned <= moment:
            return
        self._reminders[key] = moment

        def ring() -> None:
            if self._reminders.get(key) == moment:
                del self._reminders[key]
                self._look(controller, ref)

        self._agenda.add(moment, ring)
