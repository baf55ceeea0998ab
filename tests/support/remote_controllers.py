"""Sandbox controllers for any cluster with the `World` protocol, mainly a real one.

It watches the kinds of the controllers and the kinds of CRDs, keeps a cache of their objects, runs
a reconciliation for each change that concerns a controller, submits its writes, and passes it the
outcomes. Nothing is simulated here: clock and responses are those of the world.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from tidegate.model.k8s.kinds import CRD
from tidegate.model.k8s.objects import Json, Kind, LiveObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.interface import (
    AppendLog,
    Controller,
    Reconciliation,
    RequeueAt,
    index_by_kind,
)
from tidegate.sandbox.event_queue import EventQueue
from tidegate.sandbox.object_cache import InformerCache
from tidegate.sandbox.operators.availability import custom_kinds
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import (
    Message,
    Outcome,
    Response,
    WatchEnded,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.requests import RequestId, Selection, Watch

WATCH_RETRY_DELAY = Ms(SECOND)
"""Delay before the next watch of a kind that the server does not serve yet."""


class _WatchedObjects(InformerCache):
    """A cache of objects, updated by watches."""

    def apply_change(self, change: WatchEventType, live: LiveObject) -> StoreEvent:
        """Store a change, and return it as a StoreEvent."""
        key = (live.ref.namespace, live.ref.name)
        before = self._objects.setdefault(live.ref.kind, {}).pop(key, None)
        body: dict[str, Json] = msgspec.json.decode(live.body)
        stored = StoredObject(live.ref, body, (), int(live.resource_version))
        self._put(stored, is_present=change is not WatchEventType.DELETED)
        return StoreEvent(change, stored, before)


class RemoteControllers:
    """Controllers that run against a world."""

    def __init__(
        self, dispatcher: Dispatcher, controllers: Sequence[Controller], *, kinds: Iterable[Kind]
    ) -> None:
        self._dispatcher = dispatcher
        self._client = dispatcher.client()
        self._controllers_for_kind = index_by_kind(controllers)
        self._cache = _WatchedObjects()
        self._queue = EventQueue()
        self._pending: set[tuple[str, Ref]] = set()
        self._running: dict[RequestId, tuple[Controller, Ref, Reconciliation]] = {}
        self._watches: dict[Kind, RequestId] = {}
        for kind in kinds:
            self._watch(kind)

    async def run(self, until: Ms) -> None:
        """Run the controllers until a time."""
        while self._dispatcher.now() < until:
            due = self._queue.next_time()
            for message in await self._client.wait(until if due is None else min(until, due)):
                self._handle_message(message)
            while callback := self._queue.pop_due(self._dispatcher.now()):
                callback()

    def _handle_message(self, message: Message) -> None:
        match message:
            case WatchEvent():
                event = self._cache.apply_change(message.type, message.live)
                if message.live.ref.kind == CRD:
                    self._watch_custom_kinds()
                for controller in self._controllers_for_kind(message.live.ref.kind.name):
                    for ref in controller.map_event(self._cache, event):
                        self._enqueue(controller, ref, controller.delay)
            case Response() if message.request_id in self._running:
                controller, ref, reconciliation = self._running.pop(message.request_id)
                self._advance(controller, ref, reconciliation, message.outcome)
            case WatchEnded():
                self._handle_watch_end(message.request_id)
            case _:
                pass

    def _watch(self, kind: Kind) -> None:
        self._watches[kind] = self._client.submit(Watch(Selection(kind)))

    def _watch_custom_kinds(self) -> None:
        """Watch the kinds of CRDs that are not watched yet."""
        for kind in custom_kinds(self._cache):
            if kind not in self._watches:
                self._watch(kind)

    def _handle_watch_end(self, request_id: RequestId) -> None:
        """Remove an ended watch, and watch its kind again later if a CRD still defines it."""
        for kind, watch_id in [*self._watches.items()]:
            if watch_id == request_id:
                del self._watches[kind]
                self._queue.add(
                    Ms(self._dispatcher.now() + WATCH_RETRY_DELAY), self._watch_custom_kinds
                )

    def _enqueue(self, controller: Controller, ref: Ref, delay: Ms) -> None:
        key = (controller.name, ref)
        if key not in self._pending:
            self._pending.add(key)
            self._queue.add(
                Ms(self._dispatcher.now() + delay), lambda: self._reconcile(controller, ref)
            )

    def _reconcile(self, controller: Controller, ref: Ref) -> None:
        """Start a reconciliation, or postpone it while another one of the same object runs."""
        is_running = any(
            (other.name, other_ref) == (controller.name, ref)
            for other, other_ref, _ in self._running.values()
        )
        self._pending.discard((controller.name, ref))
        if is_running:
            self._enqueue(controller, ref, controller.delay)
            return
        reconciliation = controller.reconcile(self._cache, ref, self._dispatcher.now())
        self._advance(controller, ref, reconciliation, None)

    def _advance(
        self,
        controller: Controller,
        ref: Ref,
        reconciliation: Reconciliation,
        outcome: Outcome | None,
    ) -> None:
        while True:
            try:
                request = reconciliation.send(outcome)
            except StopIteration:
                return
            outcome = None
            match request:
                case RequeueAt():
                    time = max(request.time, Ms(self._dispatcher.now() + 1))
                    self._queue.add(time, partial(self._enqueue, controller, ref, Ms(0)))
                case AppendLog():
                    pass
                case _:
                    request_id = self._client.submit(request)
                    self._running[request_id] = (controller, ref, reconciliation)
                    return
