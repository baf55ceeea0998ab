"""A simulated cluster: its API server, open watches, and controllers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from tidegate.model.k8s.kinds import CRD
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.controllers.core import API_CONTROLLERS, CRD_CONTROLLER
from tidegate.sandbox.controllers.interface import AppendLog, Controller, RequeueAt, index_by_kind
from tidegate.sandbox.event_queue import EventQueue
from tidegate.sandbox.server.kind_registry import StatusError, resource_from_crd
from tidegate.sandbox.server.lifecycle import CRDS
from tidegate.sandbox.server.server import Server
from tidegate.sandbox.server.store import GroupResource, StoredObject, StoreEvent
from tidegate.sandbox.server.watches import WatchStream, WatchStreams
from tidegate.world.messages import (
    Bookmark,
    ErrorOutcome,
    Expired,
    Message,
    Outcome,
    WatchEnded,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.requests import RequestId, Watch, Write


class StoreReader:
    """Read access to the store of a server, without delay. Implements ObjectReader."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def get(self, ref: Ref) -> StoredObject | None:
        entry = self._server.registry.find(ref.kind)
        if entry is None:
            return None
        return self._server.store.get(entry.resource, ref.namespace, ref.name)

    def list_objects(self, kind: Kind, namespace: str = "") -> list[StoredObject]:
        entry = self._server.registry.find(kind)
        return self._server.store.get_table(entry.resource).list_objects(namespace) if entry else []

    def list_in_namespace(self, namespace: str) -> list[StoredObject]:
        return [
            stored
            for _, table in self._server.store.list_tables()
            if namespace in table.objects
            for stored in table.list_objects(namespace)
        ]

    def list_owned(self, uid: str) -> list[StoredObject]:
        store = self._server.store
        dependents = (
            store.get(resource, ref.namespace, ref.name) for resource, ref in store.list_owned(uid)
        )
        return [stored for stored in dependents if stored is not None]


class ServerTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Assumed latencies of a simulated API server, small compared to what waits for them."""

    read_latency: Ms = Ms(2)
    """Latency of a read."""
    write_latency: Ms = Ms(4)
    """Latency of a write."""
    event_latency: Ms = Ms(1)
    """Delay of a watch event."""
    bookmark_interval: Ms = MINUTE
    """Time between two bookmarks of a watch.

    Like `bookmarkFrequency` in `pkg/storage/cacher/cacher.go` of k8s.io/apiserver 0.36.4.
    """
    watch_timeout: Ms = Ms(300 * SECOND)
    """Duration of a watch that sets none."""


FINAL_BOOKMARK_LEAD = Ms(2 * SECOND)
"""How long before its regular end a watch gets its last bookmark.

Like `nextBookmarkTime` in `pkg/storage/cacher/cache_watcher.go` of k8s.io/apiserver 0.36.4.
"""


class Cluster:
    """A simulated cluster. Its controllers and watches run from the event queue."""

    def __init__(
        self,
        seed: str,
        *,
        queue: EventQueue,
        now: Callable[[], Ms],
        emit: Callable[[Message], None],
        timing: ServerTiming,
        controllers: tuple[Controller, ...] = API_CONTROLLERS,
    ) -> None:
        self.server = Server(seed=seed, now=now, on_change=self._handle_change)
        self.reader = StoreReader(self.server)
        self._queue = queue
        self._now = now
        self._emit = emit
        self._timing = timing
        self._streams = WatchStreams()
        self._silenced: dict[RequestId, list[WatchEvent | Bookmark]] = {}
        self._pending: set[tuple[str, Ref]] = set()
        self._requeues: dict[tuple[str, Ref], Ms] = {}
        self._controllers_for_kind = index_by_kind(controllers)

    def preload(self, write: Write) -> Outcome:
        """Write an object that exists from the start. Kinds of a CRD are served at once."""
        outcome = self.server.perform(write)
        if write.ref.kind == CRD:
            self._reconcile(CRD_CONTROLLER, write.ref)
        return outcome

    def watch(self, request_id: RequestId, watch: Watch) -> None:
        """Open a stream. Events since its resource version are sent first."""
        try:
            entry = self.server.resolve_selection(watch.selection)
        except StatusError as error:
            self._emit(WatchEnded(request_id, error.outcome))
            return
        table = self.server.store.get_table(entry.resource)
        since = (
            int(watch.resource_version)
            if watch.resource_version.isdigit()
            else self.server.store.version
        )
        if since < table.compacted_version:
            message = f"too old resource version: {since} ({table.compacted_version + 1})"
            self._emit(WatchEnded(request_id, Expired(message)))
            return
        stream = WatchStream(request_id, watch.selection, entry, since=since)
        self._streams.open(stream)
        for event in table.events_since(since):
            if watch_event := stream.to_watch_event(event):
                self._schedule(self._timing.event_latency, partial(self._deliver, watch_event))
        self._schedule_end(request_id, watch.timeout or self._timing.watch_timeout)

    def end_stream(self, request_id: RequestId, outcome: ErrorOutcome | None) -> None:
        """End a stream, and send WatchEnded with this outcome."""
        self._silenced.pop(request_id, None)
        if self._streams.close(request_id) is not None:
            self._emit(WatchEnded(request_id, outcome))

    def close_stream(self, request_id: RequestId) -> None:
        """Remove a stream that was cancelled by its client."""
        self._silenced.pop(request_id, None)
        self._streams.close(request_id)

    def silence_stream(self, request_id: RequestId, duration: Ms | None) -> None:
        """Hold back the messages of a stream for a duration; None means forever."""
        self._silenced.setdefault(request_id, [])
        if duration is not None:
            self._schedule(duration, partial(self._resume_stream, request_id))

    def list_streams(self) -> list[WatchStream]:
        """Return the open streams."""
        return self._streams.list_streams()

    def _resume_stream(self, request_id: RequestId) -> None:
        for message in self._silenced.pop(request_id, []):
            self._emit(message)

    def _schedule_end(self, request_id: RequestId, timeout: Ms) -> None:
        self._schedule(timeout, partial(self.end_stream, request_id, None))
        delay = self._timing.bookmark_interval
        while delay < timeout - FINAL_BOOKMARK_LEAD:
            self._schedule(delay, partial(self._send_bookmark, request_id))
            delay = Ms(delay + self._timing.bookmark_interval)
        self._schedule(
            Ms(max(0, timeout - FINAL_BOOKMARK_LEAD)), partial(self._send_bookmark, request_id)
        )

    def _send_bookmark(self, request_id: RequestId) -> None:
        stream = self._streams.get(request_id)
        if stream is not None:
            bookmark = stream.next_bookmark(self.server.store.get_table(stream.resource))
            if bookmark is not None:
                self._deliver(bookmark)

    def _deliver(self, message: WatchEvent | Bookmark) -> None:
        if self._streams.get(message.request_id) is None:
            return
        silenced = self._silenced.get(message.request_id)
        if silenced is not None:
            silenced.append(message)
        else:
            self._emit(message)

    def _schedule(self, delay: Ms, callback: Callable[[], None]) -> None:
        self._queue.add(Ms(self._now() + delay), callback)

    def _handle_change(self, resource: GroupResource, event: StoreEvent) -> None:
        for watch_event in self._streams.watch_events(resource, event):
            self._schedule(self._timing.event_latency, partial(self._deliver, watch_event))
        for controller in self._controllers_for_kind(event.stored.ref.kind.name):
            for ref in controller.map_event(self.reader, event):
                self._enqueue(controller, ref, controller.delay)
        if resource == CRDS and event.change is WatchEventType.DELETED:
            self._end_streams_for(resource_from_crd(event.stored.body))

    def _end_streams_for(self, resource: GroupResource) -> None:
        for stream in self._streams.list_streams():
            if stream.resource == resource:
                self._schedule(
                    self._timing.event_latency, partial(self.end_stream, stream.request_id, None)
                )

    def _enqueue(self, controller: Controller, ref: Ref, delay: Ms) -> None:
        key = (controller.name, ref)
        if key not in self._pending:
            self._pending.add(key)
            self._schedule(delay, partial(self._reconcile, controller, ref))

    def _reconcile(self, controller: Controller, ref: Ref) -> None:
        """Run one reconciliation of a controller, and perform its writes."""
        self._pending.discard((controller.name, ref))
        reconciliation = controller.reconcile(self.reader, ref, self._now())
        outcome: Outcome | None = None
        while True:
            try:
                request = reconciliation.send(outcome)
            except StopIteration:
                return
            outcome = None
            if isinstance(request, RequeueAt):
                self._requeue_at(controller, ref, max(request.time, Ms(self._now() + 1)))
            elif isinstance(request, AppendLog):
                self.server.logs.add(*request)
            else:
                outcome = self.server.perform_internal(request)

    def _requeue_at(self, controller: Controller, ref: Ref, time: Ms) -> None:
        """Requeue an object at a time.

        Only the earliest time counts; the reconciliation at that time can request the next one.
        """
        key = (controller.name, ref)
        scheduled = self._requeues.get(key)
        if scheduled is not None and self._now() <= scheduled <= time:
            return
        self._requeues[key] = time

        def fire() -> None:
            if self._requeues.get(key) == time:
                del self._requeues[key]
                self._reconcile(controller, ref)

        self._queue.add(time, fire)
