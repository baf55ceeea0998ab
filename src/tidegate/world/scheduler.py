"""Scheduling and retries of the calls of a World.

The scheduler accepts calls, returns those to send now, receives their outcomes, and decides
whether the caller gets an outcome or the call is retried. It knows neither transport nor
clock: the time is an argument.

Only calls that are safe to repeat are retried: those that were certainly not sent or not
processed, and those that are idempotent. The caller gets every other failure.
"""

from __future__ import annotations

import heapq
from collections import deque

import msgspec
from msgspec import structs

from tidegate.model.times import MINUTE, Ms
from tidegate.world.backoff import backoff_delay
from tidegate.world.concurrency import ConcurrencyWindow
from tidegate.world.messages import (
    Delivery,
    LossReason,
    NoResponse,
    Outcome,
    ServerError,
    TooManyRequests,
)
from tidegate.world.requests import (
    Call,
    Get,
    RequestId,
    Write,
    describe_target,
    is_idempotent,
)

SERVER_ERROR = 500


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of retries, after which the caller receives the failure."""

    max_duration: Ms = Ms(2 * MINUTE)
    """How long a call is retried without a response."""
    max_server_errors: int = 5
    """How many server errors (5xx) end the retries."""


DEFAULT_RETRY_POLICY = RetryPolicy()


class _PendingCall(msgspec.Struct):
    """A call that has no final outcome yet."""

    call: Call
    """The call of the caller."""
    submitted_at: Ms
    """When the caller submitted the call."""
    attempts: int = 0
    """How often the call was sent."""
    server_errors: int = 0
    """How many server errors (5xx) were returned."""
    sent_at: Ms = Ms(0)
    """When the call was last sent."""
    in_flight: bool = False
    """Whether the call is sent and has no outcome."""
    maybe_sent: bool = False
    """Whether an attempt without a response may have reached the server."""
    is_cancelled: bool = False
    """Whether the caller has cancelled the call."""


class _ClusterQueue(msgspec.Struct):
    """The calls of one cluster."""

    window: ConcurrencyWindow = msgspec.field(default_factory=ConcurrencyWindow)
    """The limit of concurrent calls."""
    urgent: deque[_PendingCall] = msgspec.field(default_factory=deque)
    """Urgent calls that are not sent yet."""
    normal: deque[_PendingCall] = msgspec.field(default_factory=deque)
    """Other calls that are not sent yet."""
    in_flight: int = 0
    """Number of calls that are sent and have no outcome."""

    def pop_next(self) -> _PendingCall | None:
        """Remove and return the next call that may be sent, urgent ones first.

        Returns None if there is none.
        """
        for queue, urgent in ((self.urgent, True), (self.normal, False)):
            while queue and queue[0].is_cancelled:
                queue.popleft()
            if queue and self.window.has_room(self.in_flight, urgent=urgent):
                return queue.popleft()
        return None


class RequestScheduler:
    """The calls of one World, by cluster."""

    def __init__(self, *, seed: int = 0, retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY) -> None:
        self._seed = seed
        self._retry_policy = retry_policy
        self._queues: dict[str, _ClusterQueue] = {}
        self._pending: dict[RequestId, _PendingCall] = {}
        self._retries: list[tuple[Ms, RequestId]] = []
        self._expired: list[_PendingCall] = []

    def add(self, call: Call, now: Ms) -> None:
        """Add a call. `pop_ready` returns it when it may be sent."""
        pending = _PendingCall(call, now)
        self._pending[call.request_id] = pending
        self._enqueue(pending)

    def pop_ready(self, now: Ms) -> list[Call]:
        """Return the calls to send now."""
        while self._retries and self._retries[0][0] <= now:
            _, request_id = heapq.heappop(self._retries)
            if pending := self._pending.get(request_id):
                self._enqueue(pending)
        return [
            pending.call
            for queue in self._queues.values()
            for pending in self._start_ready(queue, now)
        ]

    def pop_expired(self) -> list[tuple[RequestId, Outcome]]:
        """Return the calls that `pop_ready` dropped because their deadline had passed."""
        expired, self._expired = self._expired, []
        outcome = NoResponse(
            Delivery.NOT_SENT, LossReason.DEADLINE_PASSED, "timed out before it was sent"
        )
        return [(pending.call.request_id, _final_outcome(pending, outcome)) for pending in expired]

    def handle_outcome(self, request_id: RequestId, outcome: Outcome, now: Ms) -> Outcome | None:
        """Process the outcome of a call. Return the final outcome for the caller.

        Returns None if the call is retried or was cancelled.
        """
        pending = self._pending.get(request_id)
        if pending is None:
            return None
        queue = self._queues[pending.call.cluster]
        if isinstance(outcome, TooManyRequests | NoResponse):
            queue.window.on_overload(now)
        elif isinstance(pending.call.request, Get | Write):
            # The latency of a list depends on its size: only single objects measure the load.
            queue.window.on_response(Ms(now - pending.sent_at), now, in_flight=queue.in_flight)
        queue.in_flight -= 1
        pending.in_flight = False
        if isinstance(outcome, NoResponse) and outcome.delivery is Delivery.MAYBE_SENT:
            pending.maybe_sent = True
        if not self._should_retry(pending, outcome, now):
            del self._pending[request_id]
            return _final_outcome(pending, outcome)
        retry_after = (
            outcome.retry_after if isinstance(outcome, TooManyRequests | ServerError) else None
        )
        delay = backoff_delay(
            pending.attempts,
            seed=self._seed,
            target=describe_target(pending.call.request),
            minimum=retry_after,
        )
        heapq.heappush(self._retries, (Ms(now + delay), request_id))
        return None

    def cancel(self, request_id: RequestId) -> tuple[bool, bool]:
        """Cancel a call. Return whether it is in flight, and whether it may have been sent."""
        pending = self._pending.pop(request_id, None)
        if pending is None:
            return False, True
        if pending.in_flight:
            self._queues[pending.call.cluster].in_flight -= 1
        pending.is_cancelled = True
        return pending.in_flight, pending.maybe_sent

    def next_retry(self) -> Ms | None:
        """Return the time of the next retry. Returns None if there is none."""
        return self._retries[0][0] if self._retries else None

    def _enqueue(self, pending: _PendingCall) -> None:
        queue = self._queues.setdefault(pending.call.cluster, _ClusterQueue())
        (queue.urgent if pending.call.urgent else queue.normal).append(pending)

    def _start_ready(self, queue: _ClusterQueue, now: Ms) -> list[_PendingCall]:
        ready = []
        while pending := queue.pop_next():
            if pending.call.deadline is not None and now >= pending.call.deadline:
                self._expired.append(self._pending.pop(pending.call.request_id))
                continue
            pending.attempts += 1
            pending.sent_at = now
            pending.in_flight = True
            queue.in_flight += 1
            ready.append(pending)
        return ready

    def _should_retry(self, pending: _PendingCall, outcome: Outcome, now: Ms) -> bool:
        in_time = now - pending.submitted_at < self._retry_policy.max_duration
        match outcome:
            case TooManyRequests():
                return in_time
            case NoResponse(
                reason=LossReason.UNTRUSTED
                | LossReason.CREDENTIALS
                | LossReason.CREDENTIALS_TIMEOUT
            ):
                return False
            case NoResponse(delivery=Delivery.NOT_SENT):
                return in_time
            case NoResponse(delivery=Delivery.MAYBE_SENT):
                return in_time and is_idempotent(pending.call.request)
            case ServerError(status=status) if status >= SERVER_ERROR:
                pending.server_errors += 1
                return (
                    in_time
                    and pending.server_errors < self._retry_policy.max_server_errors
                    and is_idempotent(pending.call.request)
                )
            case _:
                return False


def _final_outcome(pending: _PendingCall, outcome: Outcome) -> Outcome:
    """Return the outcome of a call, as `MAYBE_SENT` if any attempt may have been sent."""
    if isinstance(outcome, NoResponse) and pending.maybe_sent:
        return structs.replace(outcome, delivery=Delivery.MAYBE_SENT)
    return outcome
