"""A reflector: lists a selection, then watches it, and lists again after a gap.

It receives the results of its requests and returns a `ReflectorAction`: which request to send,
whether to cancel the stream, and the events for the caller. After a gap it compares the new list
with its store, so that the caller sees each change once and never sees expired resource versions,
lost streams or idle connections. The store holds the objects of the selection as bytes, in the
requested view.

Like `Reflector` in `tools/cache/reflector.go` of k8s.io/client-go 0.36.4.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import LiveObject, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.world import messages
from tidegate.world.backoff import backoff_delay
from tidegate.world.requests import List, RequestId, Selection, Watch

PAGE_SIZE = 500
IDLE_TIMEOUT = Ms(2 * MINUTE)
"""Servers send a bookmark about once a minute, so a stream that is idle for two minutes is broken.
"""
MIN_STREAM_DURATION = SECOND
"""If a stream is closed sooner than this without an event, the next one is opened after a delay."""


class ReflectorState(StrEnum):
    """State of a reflector."""

    LISTING = "listing"
    WATCHING = "watching"
    BACKING_OFF = "resting"
    STOPPED = "over"


class ReflectorAction(msgspec.Struct, frozen=True):
    """What follows from a message: a request to send, a stream to cancel, events for the caller."""

    request: List | Watch | None = None
    """The request to send; None for none."""
    cancel_stream: bool = False
    """Whether to cancel the open stream."""
    events: tuple[messages.WatchEvent, ...] = ()
    """Events for the caller."""
    synced_at: str = ""
    """Resource version of the list that has just been completed; empty otherwise."""
    error: messages.ErrorOutcome | None = None
    """The error that ends the watch."""


NO_ACTION = ReflectorAction()


class Reflector:
    """The state of one selection, for the watch with this request id."""

    def __init__(
        self,
        request_id: RequestId,
        selection: Selection,
        *,
        resource_version: str,
        seed: int = 0,
        idle_timeout: Ms = IDLE_TIMEOUT,
    ) -> None:
        self.request_id = request_id
        self.selection = selection
        self.timer: Ms | None = None
        self._seed = seed
        self._idle_timeout = idle_timeout
        self._resource_version = resource_version
        self._state = ReflectorState.BACKING_OFF
        self._store: dict[Ref, LiveObject] = {}
        self._not_relisted: set[Ref] = set()
        self._opened_at = Ms(0)
        self._failures = 0

    def start(self, now: Ms) -> ReflectorAction:
        """Start with a list, or with a watch from the resource version of the caller."""
        return self._watch(now) if self._resource_version else self._list()

    def on_list_page(self, outcome: messages.Outcome, now: Ms) -> ReflectorAction:
        """Process a page of the list."""
        match outcome:
            case messages.ListPage():
                events = tuple(event for live in outcome.items for event in self._diff(live))
                if outcome.continue_token:
                    page = List(self.selection, PAGE_SIZE, outcome.continue_token)
                    return ReflectorAction(request=page, events=events)
                deleted = self._remove(self._not_relisted)
                self._not_relisted = set()
                self._resource_version = outcome.resource_version
                action = self._watch(now)
                return ReflectorAction(
                    request=action.request,
                    events=events + deleted,
                    synced_at=outcome.resource_version,
                )
            case messages.Expired():
                return self._list()
            case messages.Forbidden() | messages.NotServed():
                return self._stop(outcome)
            case messages.TooManyRequests() | messages.ServerError() | messages.NoResponse():
                return self._back_off(now, outcome)
            case _:
                raise AssertionError(outcome)

    def on_event(
        self, event_type: messages.WatchEventType, live: LiveObject, now: Ms
    ) -> ReflectorAction:
        """Process an event of the stream. Nothing is emitted for an object that has not changed."""
        self._note_progress(now, live.resource_version)
        if event_type is messages.WatchEventType.DELETED:
            self._store.pop(live.ref, None)
            return ReflectorAction(
                events=(
                    messages.WatchEvent(self.request_id, messages.WatchEventType.DELETED, live),
                )
            )
        return ReflectorAction(events=self._diff(live, event_type))

    def on_bookmark(self, resource_version: str, now: Ms) -> ReflectorAction:
        """Process a bookmark."""
        self._note_progress(now, resource_version)
        return NO_ACTION

    def on_stream_end(self, outcome: messages.ErrorOutcome | None, now: Ms) -> ReflectorAction:
        """Process the end of the stream: resume the watch, or list again."""
        match outcome:
            case messages.Expired():
                return self._list()
            case messages.Forbidden() | messages.NotServed():
                return self._stop(outcome)
            case None if now - self._opened_at >= MIN_STREAM_DURATION:
                self._failures = 0
                return self._watch(now)
            case _:
                return self._back_off(now, outcome)

    def on_timer(self, now: Ms) -> ReflectorAction:
        """Process the timer: a delay is over, or the stream was idle for too long."""
        if self.timer is None or now < self.timer:
            return NO_ACTION
        if self._state is ReflectorState.WATCHING:
            action = self._watch(now)
            return ReflectorAction(request=action.request, cancel_stream=True)
        return self._watch(now) if self._resource_version else self._list()

    def _list(self) -> ReflectorAction:
        self._state = ReflectorState.LISTING
        self._resource_version = ""
        self._not_relisted = set(self._store)
        self.timer = None
        return ReflectorAction(request=List(self.selection, PAGE_SIZE))

    def _watch(self, now: Ms) -> ReflectorAction:
        self._state = ReflectorState.WATCHING
        self._opened_at = now
        self.timer = Ms(now + self._idle_timeout)
        return ReflectorAction(request=Watch(self.selection, self._resource_version))

    def _back_off(self, now: Ms, outcome: messages.ErrorOutcome | None) -> ReflectorAction:
        self._state = ReflectorState.BACKING_OFF
        self._failures += 1
        retry_after = (
            outcome.retry_after
            if isinstance(outcome, messages.TooManyRequests | messages.ServerError)
            else None
        )
        delay = backoff_delay(
            self._failures, seed=self._seed, target=repr(self.selection), minimum=retry_after
        )
        self.timer = Ms(now + delay)
        return NO_ACTION

    def _stop(self, error: messages.ErrorOutcome) -> ReflectorAction:
        """Stop for good.

        The objects of a kind that is no longer served are deleted. Forbidden objects may still
        exist.
        """
        self._state = ReflectorState.STOPPED
        self.timer = None
        deleted = self._remove(set(self._store)) if isinstance(error, messages.NotServed) else ()
        return ReflectorAction(events=deleted, error=error)

    def _note_progress(self, now: Ms, resource_version: str) -> None:
        self._resource_version = resource_version
        self._failures = 0
        self.timer = Ms(now + self._idle_timeout)

    def _diff(
        self, live: LiveObject, event_type: messages.WatchEventType = messages.WatchEventType.ADDED
    ) -> tuple[messages.WatchEvent, ...]:
        self._not_relisted.discard(live.ref)
        previous = self._store.get(live.ref)
        self._store[live.ref] = live
        if previous is None:
            return (messages.WatchEvent(self.request_id, event_type, live),)
        if previous.uid != live.uid:
            return (
                messages.WatchEvent(self.request_id, messages.WatchEventType.DELETED, previous),
                messages.WatchEvent(self.request_id, messages.WatchEventType.ADDED, live),
            )
        if previous.resource_version == live.resource_version:
            return ()
        return (messages.WatchEvent(self.request_id, messages.WatchEventType.MODIFIED, live),)

    def _remove(self, refs: set[Ref]) -> tuple[messages.WatchEvent, ...]:
        return tuple(
            messages.WatchEvent(
                self.request_id, messages.WatchEventType.DELETED, self._store.pop(ref)
            )
            for ref in sorted(refs)
        )
