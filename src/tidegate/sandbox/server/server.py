"""The API server of a cluster: requests are performed at once, and changes are reported."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec

from tidegate.model.k8s.labels import SelectorError
from tidegate.model.k8s.objects import LiveObject, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.server.creation import IdentityGenerator
from tidegate.sandbox.server.kind_registry import (
    KindEntry,
    KindRegistry,
    StatusError,
    not_found_error,
)
from tidegate.sandbox.server.lifecycle import CRDS
from tidegate.sandbox.server.logs import ContainerLogs
from tidegate.sandbox.server.store import GroupResource, ObjectStore, StoredObject, StoreEvent
from tidegate.sandbox.server.watches import build_predicate
from tidegate.sandbox.server.writes import Writer
from tidegate.schema.builtin import kubernetes_release
from tidegate.schema.immutable import is_established
from tidegate.schema.structural import shapes_from_crd
from tidegate.world import messages
from tidegate.world.requests import Discover, Get, List, Logs, RawGet, Selection, Write

MAX_LIST_SNAPSHOTS = 100
"""Maximum number of unfinished paginated lists."""


class Server:
    """An in-memory API server."""

    def __init__(
        self,
        *,
        seed: str,
        now: Callable[[], Ms],
        on_change: Callable[[GroupResource, StoreEvent], None],
    ) -> None:
        self.registry = KindRegistry()
        self.store = ObjectStore(self._handle_change)
        self._on_change = on_change
        self._writer = Writer(self.store, now=now, identities=IdentityGenerator(seed))
        self.logs = ContainerLogs()
        self._list_snapshots: dict[str, tuple[tuple[LiveObject, ...], str]] = {}
        self._snapshot_numbers = count(1)

    def perform_internal(self, write: Write) -> messages.Outcome:
        """Perform a write of one of the cluster's own controllers."""
        try:
            return self._writer.perform(write, self._entry_for_write(write), is_internal=True)
        except StatusError as error:
            return error.outcome

    def perform(self, request: Get | List | Write | Discover | Logs | RawGet) -> messages.Outcome:
        """Perform a request, and return its outcome."""
        try:
            match request:
                case Get(ref=ref):
                    return messages.Success(self._get_object(ref).to_live(ref.kind, request.view))
                case List():
                    return self._list(request)
                case Write():
                    return self._writer.perform(request, self._entry_for_write(request))
                case Discover():
                    return messages.ApiResources(self.registry.list_kinds())
                case Logs():
                    return self.logs.read(self._get_object(request.ref), request)
                case RawGet():
                    return self._raw_get(request)
        except StatusError as error:
            return error.outcome

    def resolve_selection(self, selection: Selection) -> KindEntry:
        """Return the kind of a selection.

        Raises StatusError for a kind that is not served, and for an invalid selector.
        """
        entry = self.registry.get_served(selection.kind)
        try:
            build_predicate(selection)
        except SelectorError as error:
            raise StatusError(messages.Invalid(str(error))) from None
        return entry

    def compact(self) -> None:
        """Drop all history: resumed watches and continued lists expire."""
        for _, table in self.store.list_tables():
            table.compact(self.store.version)
        self._list_snapshots.clear()

    def _entry_for_write(self, write: Write) -> KindEntry:
        entry = self.registry.get_served(write.ref.kind)
        if write.subresource and write.subresource not in entry.served.subresources:
            raise StatusError(
                messages.NotServed("the server could not find the requested resource")
            )
        return entry

    def _get_object(self, ref: Ref) -> StoredObject:
        entry = self.registry.get_served(ref.kind)
        stored = self.store.get(entry.resource, ref.namespace, ref.name)
        if stored is None:
            raise not_found_error(entry, ref.name)
        return stored

    def _list(self, request: List) -> messages.Outcome:
        entry = self.resolve_selection(request.selection)
        if request.continue_token:
            snapshot = self._list_snapshots.pop(request.continue_token, None)
            if snapshot is None:
                return messages.Expired("The provided continue parameter is too old")
            items, version = snapshot
        else:
            items, version = self._select_objects(request.selection, entry), str(self.store.version)
        if not request.limit or len(items) <= request.limit:
            return messages.ListPage(items, version)
        token = f"{version}.{next(self._snapshot_numbers)}"
        self._list_snapshots[token] = items[request.limit :], version
        while len(self._list_snapshots) > MAX_LIST_SNAPSHOTS:
            self._list_snapshots.pop(next(iter(self._list_snapshots)))
        return messages.ListPage(items[: request.limit], version, token)

    def _select_objects(self, selection: Selection, entry: KindEntry) -> tuple[LiveObject, ...]:
        is_selected = build_predicate(selection)
        objects = self.store.get_table(entry.resource).list_objects(selection.namespace)
        return tuple(
            stored.to_live(entry.kind, selection.view)
            for stored in objects
            if is_selected is None or is_selected(stored)
        )

    def _raw_get(self, request: RawGet) -> messages.Outcome:
        if request.path == "/version":
            return messages.RawResponse(msgspec.json.encode({"gitVersion": kubernetes_release()}))
        return messages.NotServed("the server could not find the requested resource")

    def _handle_change(self, resource: GroupResource, event: StoreEvent) -> None:
        if resource == CRDS:
            body = event.stored.body
            if event.change is messages.WatchEventType.DELETED:
                self.store.drop_table(self.registry.remove_crd(body))
            elif is_established(body):
                self.registry.add_crd(body, shapes_from_crd(body.get("spec")))
        self._on_change(resource, event)
