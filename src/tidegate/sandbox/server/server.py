"""One cluster's API: a request in, an outcome out, at once; changes are told as they happen."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec

from tidegate.model.labels import SelectorError
from tidegate.model.moment import Ms
from tidegate.model.objects import Live, Ref
from tidegate.sandbox.server.beginning import Names
from tidegate.sandbox.server.lifecycle import CRDS
from tidegate.sandbox.server.logs import Printed
from tidegate.sandbox.server.register import KindEntry, RefusedCall, Register, missing
from tidegate.sandbox.server.store import ObjectStore, Resource, Stored, Transition
from tidegate.sandbox.server.streams import selects
from tidegate.sandbox.server.writing import Writer
from tidegate.schema.builtin import release
from tidegate.schema.frozen import is_established
from tidegate.schema.structural import shapes_of
from tidegate.world import facts
from tidegate.world.calls import Get, Http, Kinds, List, Logs, Selection, Write

SNAPSHOTS = 100
"""How many unfinished lists are remembered."""


class Server:
    """An API server in memory."""

    def __init__(
        self,
        *,
        seed: str,
        now: Callable[[], Ms],
        told: Callable[[Resource, Transition], None],
    ) -> None:
        self.register = Register()
        self.store = ObjectStore(self._changed)
        self._told = told
        self._writer = Writer(self.store, now=now, names=Names(seed))
        self.printed = Printed()
        self._pages: dict[str, tuple[tuple[Live, ...], str]] = {}
        self._page_numbers = count(1)

    def write(self, write: Write) -> facts.Outcome:
        """Do what one of the cluster's own controllers asks."""
        try:
            return self._writer.perform(write, self._entry_of(write), is_own=True)
        except RefusedCall as refused:
            return refused.outcome

    def perform(self, request: Get | List | Write | Kinds | Logs | Http) -> facts.Outcome:
        """Do what is asked."""
        try:
            match request:
                case Get(ref=ref):
                    return facts.Done(self._find(ref).live(ref.kind, request.view))
                case List():
                    return self._list(request)
                case Write():
                    return self._writer.perform(request, self._entry_of(request))
                case Kinds():
                    return facts.Catalogue(self.register.kinds())
                case Logs():
                    return self.printed.read(self._find(request.ref), request)
                case Http():
                    return self._http(request)
        except RefusedCall as refused:
            return refused.outcome

    def find(self, selection: Selection) -> KindEntry:
        """The kind of a selection, or why it cannot be asked for."""
        entry = self.register.served(selection.kind)
        try:
            selects(selection)
        except SelectorError as error:
            raise RefusedCall(facts.Invalid(str(error))) from None
        return entry

    def compact(self) -> None:
        """Forget all history: watches that resume and lists that go on are expired."""
        for _, table in self.store.tables():
            table.forget(self.store.version)
        self._pages.clear()

    def _entry_of(self, write: Write) -> KindEntry:
        entry = self.register.served(write.ref.kind)
        if write.subresource and write.subresource not in entry.served.subresources:
            raise RefusedCall(facts.NotServed("the server could not find the requested resource"))
        return entry

    def _find(self, ref: Ref) -> Stored:
        entry = self.register.served(ref.kind)
        stored = self.store.get(entry.resource, ref.namespace, ref.name)
        if stored is None:
            raise missing(entry, ref.name)
        return stored

    def _list(self, request: List) -> facts.Outcome:
        entry = self.find(request.selection)
        if request.resume:
            found = self._pages.pop(request.resume, None)
            if found is None:
                return facts.Expired("The provided continue parameter is too old")
            items, version = found
        else:
            items, version = self._rows(request.selection, entry), str(self.store.version)
        if not request.limit or len(items) <= request.limit:
            return facts.Listed(items, version)
        token = f"{version}.{next(self._page_numbers)}"
        self._pages[token] = items[request.limit :], version
        while len(self._pages) > SNAPSHOTS:
            self._pages.pop(next(iter(self._pages)))
        return facts.Listed(items[: request.limit], version, token)

    def _rows(self, selection: Selection, entry: KindEntry) -> tuple[Live, ...]:
        belongs = selects(selection)
        rows = self.store.table(entry.resource).rows(selection.namespace)
        return tuple(
            stored.live(entry.kind, selection.view)
            for stored in rows
            if belongs is None or belongs(stored)
        )

    def _http(self, request: Http) -> facts.Outcome:
        if request.path == "/version":
            return facts.Said(msgspec.json.encode({"gitVersion": release()}))
        return facts.NotServed("the server could not find the requested resource")

    def _changed(self, resource: Resource, event: Transition) -> None:
        if resource == CRDS:
            body = event.stored.body
            if event.change is facts.Change.DELETED:
                self.store.drop(self.register.unlearn(body))
            elif is_established(body):
                self.register.learn(body, shapes_of(body.get("spec")))
        self._told(resource, event)
