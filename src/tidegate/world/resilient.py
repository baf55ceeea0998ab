"""A World with retries and continuous watches.

A `RequestScheduler` decides when calls are sent and retries them. A `Reflector` keeps each watch
complete: the caller receives the existing objects, then a response once they are complete, then
every change, across lost streams and expired resource versions. Plain Worlds send each call once.
"""

from __future__ import annotations

import msgspec
from msgspec import structs

from tidegate.model.times import Ms
from tidegate.world import messages
from tidegate.world.protocol import World
from tidegate.world.reflector import IDLE_TIMEOUT, Reflector, ReflectorAction
from tidegate.world.requests import Call, List, RequestId, Selection, Watch
from tidegate.world.scheduler import DEFAULT_RETRY_POLICY, RequestScheduler, RetryPolicy


class _ActiveReflector(msgspec.Struct):
    """A running reflector, the call it serves, and the id of its current request."""

    reflector: Reflector
    """The state of the watch."""
    call: Call
    """The call of the caller."""
    fallback_namespaces: tuple[str, ...]
    """Namespaces to watch instead if watching all namespaces is forbidden."""
    request_id: RequestId | None = None
    """The id of the current list or watch; None if none is sent."""
    has_synced: bool = False
    """Whether the initial list is complete."""


class _CallerWatch(msgspec.Struct):
    """The watch of a caller: one reflector, or one for each permitted namespace."""

    reflectors: list[_ActiveReflector] = msgspec.field(default_factory=list)
    """One reflector, or one for each permitted namespace."""
    answered: bool = False
    """Whether the caller has received the response."""

    def has_synced(self) -> bool:
        return all(active.has_synced for active in self.reflectors)


class ResilientWorld:
    """A World that retries calls and keeps watches complete."""

    def __init__(
        self,
        world: World,
        *,
        seed: int = 0,
        retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
        idle_timeout: Ms = IDLE_TIMEOUT,
    ) -> None:
        self._world = world
        self._seed = seed
        self._idle_timeout = idle_timeout
        self._scheduler = RequestScheduler(seed=seed, retry_policy=retry_policy)
        self._watches: dict[RequestId, _CallerWatch] = {}
        self._reflectors: dict[RequestId, _ActiveReflector] = {}
        self._last_id = 0
        self._next_timer: Ms | None = None
        """No reflector has an earlier timer; when it fires, all reflectors are checked."""
        self._messages: list[messages.Message] = []
        self._is_woken = False

    def now(self) -> Ms:
        return self._world.now()

    def submit(self, call: Call) -> None:
        now = self.now()
        if isinstance(call.request, Watch):
            self._watches[call.request_id] = _CallerWatch()
            watch = call.request
            self._start_reflector(
                call, watch.selection, watch.resource_version, watch.fallback_namespaces
            )
        else:
            self._scheduler.add(call, now)
        self._send_ready(now)
        if self._messages:
            self._world.wake()

    def cancel(self, request_id: RequestId) -> bool:
        self._messages = [
            message
            for message in self._messages
            if getattr(message, "request_id", None) != request_id
        ]
        if self._drop_watch(request_id):
            return True
        is_in_flight, maybe_sent = self._scheduler.cancel(request_id)
        unsent = self._world.cancel(request_id) if is_in_flight else True
        self._send_ready(self.now())
        return unsent and not maybe_sent

    async def wait(self, until: Ms | None) -> tuple[messages.Message, ...]:
        self._is_woken = False
        self._run_timers(self.now())
        while not self._messages and not self._is_woken:
            for message in await self._world.wait(self._next_deadline(until)):
                self._handle(message, self.now())
            self._run_timers(self.now())
            if until is not None and self.now() >= until:
                break
        received, self._messages = tuple(self._messages), []
        return received or (messages.TimerFired(),)

    def wake(self) -> None:
        self._is_woken = True
        self._world.wake()

    def _drop_watch(self, request_id: RequestId) -> bool:
        watch = self._watches.pop(request_id, None)
        for active in watch.reflectors if watch else ():
            self._stop(active)
        return watch is not None

    def _next_deadline(self, until: Ms | None) -> Ms | None:
        return _earliest(until, _earliest(self._scheduler.next_retry(), self._next_timer))

    def _run_timers(self, now: Ms) -> None:
        if self._next_timer is not None and self._next_timer <= now:
            self._next_timer = None
            for watch in [*self._watches.values()]:
                for active in [*watch.reflectors]:
                    self._apply(active, active.reflector.on_timer(now), now)
        self._send_ready(now)

    def _send_ready(self, now: Ms) -> None:
        for call in self._scheduler.pop_ready(now):
            self._world.submit(call)
        self._messages += [
            messages.Response(request_id, outcome)
            for request_id, outcome in self._scheduler.pop_expired()
        ]

    def _handle(self, message: messages.Message, now: Ms) -> None:
        match message:
            case messages.Response():
                self._handle_response(message, now)
            case messages.WatchEvent() if active := self._reflectors.get(message.request_id):
                self._apply(active, active.reflector.on_event(message.type, message.live, now), now)
            case messages.Bookmark() if active := self._reflectors.get(message.request_id):
                self._apply(
                    active, active.reflector.on_bookmark(message.resource_version, now), now
                )
            case messages.WatchEnded() if active := self._reflectors.pop(message.request_id, None):
                active.request_id = None
                self._apply(active, active.reflector.on_stream_end(message.outcome, now), now)
            case _:
                pass

    def _handle_response(self, response: messages.Response, now: Ms) -> None:
        outcome = self._scheduler.handle_outcome(response.request_id, response.outcome, now)
        if outcome is not None:
            active = self._reflectors.pop(response.request_id, None)
            if active is None:
                self._messages.append(messages.Response(response.request_id, outcome))
            else:
                active.request_id = None
                self._apply(active, active.reflector.on_list_page(outcome, now), now)
        self._send_ready(now)

    def _start_reflector(
        self,
        call: Call,
        selection: Selection,
        resource_version: str,
        fallback_namespaces: tuple[str, ...],
    ) -> None:
        reflector = Reflector(
            call.request_id,
            selection,
            resource_version=resource_version,
            seed=self._seed,
            idle_timeout=self._idle_timeout,
        )
        active = _ActiveReflector(reflector, call, fallback_namespaces)
        self._watches[call.request_id].reflectors.append(active)
        now = self.now()
        self._apply(active, reflector.start(now), now)
        if resource_version:
            self._mark_synced(active, resource_version)

    def _apply(self, active: _ActiveReflector, action: ReflectorAction, now: Ms) -> None:
        if action.cancel_stream:
            self._stop(active)
        self._messages.extend(action.events)
        if action.request is not None:
            self._send(active, action.request, now)
        if action.error is not None:
            self._handle_error(active, action.error)
        elif action.synced_at:
            self._mark_synced(active, action.synced_at)
        self._next_timer = _earliest(self._next_timer, active.reflector.timer)

    def _send(self, active: _ActiveReflector, request: List | Watch, now: Ms) -> None:
        self._last_id -= 1
        active.request_id = RequestId(self._last_id)
        self._reflectors[active.request_id] = active
        call = Call(
            request_id=active.request_id,
            request=request,
            cluster=active.call.cluster,
            identity=active.call.identity,
            urgent=active.call.urgent,
        )
        if isinstance(request, List):
            self._scheduler.add(call, now)
            self._send_ready(now)
        else:
            self._world.submit(call)

    def _mark_synced(self, active: _ActiveReflector, resource_version: str) -> None:
        active.has_synced = True
        watch = self._watches[active.call.request_id]
        if not watch.answered and watch.has_synced():
            watch.answered = True
            self._messages.append(
                messages.Response(active.call.request_id, messages.ListPage((), resource_version))
            )

    def _handle_error(self, active: _ActiveReflector, error: messages.ErrorOutcome) -> None:
        request_id = active.call.request_id
        watch = self._watches[request_id]
        watch.reflectors.remove(active)
        if isinstance(error, messages.Forbidden) and active.fallback_namespaces:
            selections = [
                structs.replace(active.reflector.selection, namespace=name)
                for name in active.fallback_namespaces
            ]
            for selection in selections:
                self._start_reflector(active.call, selection, "", ())
            return
        self._drop_watch(request_id)
        self._messages.append(messages.WatchEnded(request_id, error))

    def _stop(self, active: _ActiveReflector) -> None:
        if active.request_id is None:
            return
        self._reflectors.pop(active.request_id, None)
        self._scheduler.cancel(active.request_id)
        self._world.cancel(active.request_id)
        active.request_id = None


def _earliest(first: Ms | None, second: Ms | None) -> Ms | None:
    """Return the earlier of two times, each of which may be None."""
    return second if first is None else first if second is None else min(first, second)
