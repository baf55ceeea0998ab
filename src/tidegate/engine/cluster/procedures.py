"""Procedures: sequences of API calls, written as generators, of which many run concurrently.

A procedure yields its API calls and receives their outcomes, in the same order.

    def rename(object_ref):
        (outcome,) = yield (ApiCall(object_ref.cluster, Get(object_ref.ref)),)
        ...
        return result
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import TypeAlias, TypeVar

import msgspec

from tidegate.engine.cluster.contact import ClusterContacts
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.times import Ms
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.world.dispatcher import Client
from tidegate.world.messages import Delivery, LossReason, NoResponse, Outcome
from tidegate.world.requests import Request, RequestId, Watch, Write, is_idempotent

ResultT = TypeVar("ResultT")


class ApiCall(msgspec.Struct, frozen=True):
    """One request to a cluster."""

    cluster: str
    request: Request
    urgent: bool = False
    """Whether the request is sent before others."""
    identity: ImpersonatedUser | None = None
    """User to impersonate; None for our own user."""


class Pause(msgspec.Struct, frozen=True):
    """Wait until a time; the procedure is resumed without outcomes."""

    until: Ms


ProcedureYield: TypeAlias = tuple[ApiCall, ...] | Pause
Procedure: TypeAlias = Generator[ProcedureYield, tuple[Outcome, ...], ResultT]
OnResult: TypeAlias = Callable[[ResultT], None]


def impersonate(
    identity: ImpersonatedUser | None, procedure: Procedure[ResultT]
) -> Procedure[ResultT]:
    """Run a procedure as another user; None runs it as our own user."""
    if identity is None:
        return (yield from procedure)
    outcomes: tuple[Outcome, ...] | None = None
    try:
        while True:
            yielded = next(procedure) if outcomes is None else procedure.send(outcomes)
            if not isinstance(yielded, Pause):
                yielded = tuple(
                    msgspec.structs.replace(call, identity=identity) for call in yielded
                )
            outcomes = yield yielded
    except StopIteration as stop:
        result: ResultT = stop.value
        return result


def gather(procedures: Iterable[Procedure[ResultT]]) -> Procedure[list[ResultT]]:
    """Run several procedures as one; return their results in order.

    Calls that they yield at the same time are sent at once. A pause ends when its time has come
    and no other procedure waits for an answer.
    """
    results: dict[int, ResultT] = {}
    yielded: dict[int, ProcedureYield] = {}
    running = tuple(procedures)

    def resume(index: int, outcomes: tuple[Outcome, ...] | None) -> None:
        yielded.pop(index, None)
        procedure = running[index]
        try:
            yielded[index] = next(procedure) if outcomes is None else procedure.send(outcomes)
        except StopIteration as stop:
            results[index] = stop.value

    for index in range(len(running)):
        resume(index, None)
    while yielded:
        calling = {index: item for index, item in yielded.items() if not isinstance(item, Pause)}
        if calling:
            answers = iter((yield tuple(call for item in calling.values() for call in item)))
            for index, item in calling.items():
                resume(index, tuple(islice(answers, len(item))))
            continue
        pauses = {index: item for index, item in yielded.items() if isinstance(item, Pause)}
        first = min(pauses.values(), key=lambda pause: pause.until)
        yield first
        for index in [index for index, pause in pauses.items() if pause.until <= first.until]:
            resume(index, ())
    return [results[index] for index in range(len(running))]


PERMANENT_LOSSES = frozenset(
    {LossReason.UNTRUSTED, LossReason.CREDENTIALS, LossReason.CREDENTIALS_TIMEOUT}
)
"""Losses that waiting does not repair."""


class _RunningProcedure(msgspec.Struct, eq=False):
    """A running procedure with the outcomes that it waits for."""

    resume: Callable[[tuple[Outcome, ...] | None], ProcedureYield | None]
    outcomes: list[Outcome | None] = msgspec.field(default_factory=list)
    pending_count: int = 0


class ProcedureRunner:
    """Runner of all procedures of one rollout. Responses are matched by request id."""

    def __init__(
        self, client: Client, write_deadline: Callable[[ApiCall], Ms | None] = lambda _: None
    ) -> None:
        self._client = client
        self._write_deadline = write_deadline
        self._pause_count = 0
        self._pending_calls: dict[RequestId, tuple[_RunningProcedure, int, ApiCall]] = {}
        self._pause_queue: list[tuple[Ms, int, _RunningProcedure]] = []
        self.watches: dict[RequestId, str] = {}
        """The cluster of each watch; its watch events are delivered as long as it lasts."""
        self.contacts = ClusterContacts()

    def run(self, procedure: Procedure[ResultT], on_result: OnResult[ResultT]) -> None:
        """Start a procedure; `on_result` receives its result, possibly at once."""

        def resume(outcomes: tuple[Outcome, ...] | None) -> ProcedureYield | None:
            try:
                return next(procedure) if outcomes is None else procedure.send(outcomes)
            except StopIteration as stop:
                on_result(stop.value)
                return None

        running = _RunningProcedure(resume)
        self._dispatch(running, resume(None))

    def deliver(self, request_id: RequestId, outcome: Outcome) -> bool:
        """Pass an outcome to the procedure that waits for it; return False if none does."""
        pending = self._pending_calls.pop(request_id, None)
        if pending is None:
            return False
        running, index, call = pending
        self.contacts[call.cluster].end_call(request_id, outcome, self._client.now())
        if isinstance(outcome, NoResponse) and self._is_sent_again(call, outcome):
            self._pending_calls[self._submit(call)] = pending
            return True
        running.outcomes[index] = outcome
        running.pending_count -= 1
        if not running.pending_count:
            outcomes = tuple(received for received in running.outcomes if received is not None)
            self._dispatch(running, running.resume(outcomes))
        return True

    def record_event(self, request_id: RequestId) -> None:
        """Record that a watch delivered something."""
        cluster = self.watches.get(request_id)
        if cluster is not None:
            self.contacts[cluster].record_answer(self._client.now())

    def _is_sent_again(self, call: ApiCall, outcome: NoResponse) -> bool:
        """Return whether a call without a response is repeated instead of failing its procedure.

        A call that was not sent in time is, if its deadline was extended. While the cluster does
        not answer, so is every call that may be repeated.
        """
        if outcome.reason is LossReason.DEADLINE_PASSED:
            return self._may_be_sent(call)
        if outcome.reason in PERMANENT_LOSSES or outcome.reason is LossReason.CANCELLED:
            return False
        is_safe = outcome.delivery is Delivery.NOT_SENT or is_idempotent(call.request)
        return is_safe and self.contacts[call.cluster].silent_since is not None

    def resume_due(self, now: Ms) -> None:
        """Resume the procedures whose pause is over."""
        while self._pause_queue and self._pause_queue[0][0] <= now:
            running = heapq.heappop(self._pause_queue)[2]
            self._dispatch(running, running.resume(()))

    @property
    def wake_at(self) -> Ms | None:
        """End of the next pause; None if no procedure is paused."""
        return self._pause_queue[0][0] if self._pause_queue else None

    def cancel_writes(self, is_selected: Callable[[str, Ref], bool]) -> None:
        """Cancel the pending writes of selected objects.

        Their procedures receive a NoResponse outcome.
        """
        pending = [(request_id, call) for request_id, (_, _, call) in self._pending_calls.items()]
        for request_id, call in pending:
            if not isinstance(call.request, Write) or not is_selected(
                call.cluster, call.request.ref
            ):
                continue
            sent = Delivery.NOT_SENT if self._client.cancel(request_id) else Delivery.MAYBE_SENT
            self.deliver(
                request_id, NoResponse(sent, LossReason.CANCELLED, "request was cancelled")
            )

    def cancel_all(self) -> set[ClusterRef]:
        """Cancel every procedure and watch; requests that were not sent yet are never sent.

        Return the objects of writes that may have been sent.
        """
        maybe_written: set[ClusterRef] = set()
        for request_id in self.watches:
            self._client.cancel(request_id)
        for request_id, (_, _, call) in self._pending_calls.items():
            is_unsent, request = self._client.cancel(request_id), call.request
            if not is_unsent and isinstance(request, Write) and not request.dry_run:
                maybe_written.add(ClusterRef(call.cluster, request.ref))
        self.watches.clear()
        self._pending_calls.clear()
        self._pause_queue.clear()
        return maybe_written

    def _may_be_sent(self, call: ApiCall) -> bool:
        """Return whether a call may be sent after all, because its deadline was extended."""
        deadline = self._write_deadline(call)
        return deadline is None or self._client.now() < deadline

    def _submit(self, call: ApiCall) -> RequestId:
        request_id = self._client.submit(
            call.request,
            cluster=call.cluster,
            identity=call.identity,
            urgent=call.urgent,
            deadline=self._write_deadline(call),
        )
        if isinstance(call.request, Watch):
            self.watches[request_id] = call.cluster
        self.contacts[call.cluster].add_call(request_id, call.request, self._client.now())
        return request_id

    def _dispatch(self, running: _RunningProcedure, yielded: ProcedureYield | None) -> None:
        while yielded is not None:
            if isinstance(yielded, Pause):
                self._pause_count += 1
                heapq.heappush(self._pause_queue, (yielded.until, self._pause_count, running))
                return
            running.outcomes = [None] * len(yielded)
            running.pending_count = len(yielded)
            for index, call in enumerate(yielded):
                self._pending_calls[self._submit(call)] = (running, index, call)
            if yielded:
                return
            yielded = running.resume(())
