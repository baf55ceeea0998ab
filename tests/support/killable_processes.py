"""Several processes on one sandbox: each may be killed, cut off or frozen, and the others live on.

A world has one waiter. Here that is `let_live`, which hands each process the messages of its own
calls, and lets it work whenever there are some or the moment has come that it waits for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Coroutine, Generator, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.controllers.interface import Controller
from tidegate.sandbox.faults import DISCONNECTED, UNREACHABLE, Fault
from tidegate.sandbox.world import START, Sandbox, Worker
from tidegate.world.messages import (
    Message,
    NoResponse,
    Outcome,
    RawResponse,
    Response,
    ServerError,
    TimerFired,
    WatchEnded,
)
from tidegate.world.requests import Call, Request, RequestId, RunWorker, Watch, Write

LONGEST = Ms(60 * MINUTE)
Returned = TypeVar("Returned")
Story: TypeAlias = Coroutine[object, None, str]
"""What a process does; how it ended, in a word."""
NOT_RECEIVED = RequestId(0)
"""The ticket of a call that never reached the shared sandbox."""
Happening: TypeAlias = tuple[Ms, Callable[[], None]]


@dataclass(frozen=True)
class ProcessedWrite:
    """A write that the server has looked at, and who sent it."""

    sender: str
    at: Ms
    write: Write
    outcome: Outcome


class SharedSandbox(Sandbox):
    """A sandbox whose callers have tickets of their own, and a record of who wrote what."""

    def __init__(
        self,
        controllers: tuple[Controller, ...],
        *,
        seed: int = 0,
        faults: tuple[Fault, ...] = (),
        workers: dict[str, Worker] | None = None,
        clusters: tuple[str, ...] = ("",),
    ) -> None:
        super().__init__(
            clusters, seed=seed, faults=faults, workers=workers, controllers=controllers
        )
        self.landed: list[ProcessedWrite] = []
        self._senders: dict[RequestId, tuple[ProcessWorld, RequestId]] = {}

    def send(self, sender: ProcessWorld, call: Call) -> RequestId:
        request_id = RequestId(len(self._senders) + 1)
        self._senders[request_id] = (sender, call.request_id)
        self.submit(structs.replace(call, request_id=request_id))
        return request_id

    def hand_out(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if not isinstance(message, TimerFired):
                sender, known_as = self._senders[message.request_id]
                sender.receive(message, known_as)

    def _start_local_work(self, request_id: RequestId, local: RunWorker) -> None:
        """Local work is done at once, so that no event loop is needed."""
        try:
            outcome: Outcome = RawResponse(self._workers[local.name](local.argument))
        except LookupError as error:
            outcome = ServerError(0, type(error).__name__, str(error))
        self._emit(Response(request_id, outcome))

    def _perform(self, call: Call) -> Outcome:
        outcome = super()._perform(call)
        request = call.request
        if isinstance(request, Write) and not request.dry_run:
            sender = self._senders[call.request_id][0].name
            self.landed.append(ProcessedWrite(sender, self.now(), request, outcome))
        return outcome


class _Rest:
    """Gives control back to `let_live`."""

    def __await__(self) -> Generator[None]:
        yield


class ProcessWorld:
    """The world as one process sees it. `fast`: by so much its clock is ahead of the realm's."""

    def __init__(self, realm: SharedSandbox, name: str, *, fast: Ms = Ms(0)) -> None:
        self.name = name
        self.until: Ms | None = None
        """The time at which the process continues without a message, by the clock of the realm."""
        self._fast = fast
        self._realm = realm
        self._sent: dict[RequestId, tuple[RequestId, Call]] = {}
        self._messages: list[Message] = []
        self._is_cut = self._is_silent = False

    def now(self) -> Ms:
        return Ms(self._realm.now() + self._fast)

    def submit(self, call: Call) -> None:
        if self._is_cut and not isinstance(call.request, RunWorker):
            self._messages.append(_loss(call, UNREACHABLE))
        elif self._is_silent and not isinstance(call.request, RunWorker):
            self._sent[call.request_id] = (NOT_RECEIVED, call)
        else:
            self._sent[call.request_id] = (self._realm.send(self, call), call)

    def cancel(self, request_id: RequestId) -> bool:
        self._messages = [
            message
            for message in self._messages
            if getattr(message, "request_id", None) != request_id
        ]
        sent = self._sent.pop(request_id, None)
        return sent is not None and self._realm.cancel(sent[0])

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        self.until = None if until is None else Ms(until - self._fast)
        while not self.is_ready:
            await _Rest()
        messages, self._messages = tuple(self._messages), []
        return messages or (TimerFired(),)

    def wake(self) -> None:
        self.until = self.now()

    @property
    def is_ready(self) -> bool:
        return bool(self._messages) or (self.until is not None and self.until <= self._realm.now())

    def receive(self, message: Message, known_as: RequestId) -> None:
        """Take a message of the shared sandbox, unless its request was cancelled."""
        if self._is_silent and not isinstance(self._request(known_as), RunWorker):
            return
        if (
            isinstance(message, TimerFired)
            or self._sent.get(known_as, (None,))[0] != message.request_id
        ):
            return
        if isinstance(message, Response | WatchEnded):
            del self._sent[known_as]
        self._messages.append(structs.replace(message, request_id=known_as))

    def cut(self) -> None:
        """Break every connection; what was sent may still be done, and nothing more can be."""
        self._is_cut = True
        for known_as, (request_id, call) in self._sent.items():
            if isinstance(call.request, Watch) or request_id == NOT_RECEIVED:
                self._realm.cancel(request_id)
            self._messages.append(_loss(structs.replace(call, request_id=known_as), DISCONNECTED))
        self._sent.clear()

    def silence(self) -> None:
        """Lose everything on the way, as a frozen server does: no call fails, none is answered."""
        self._is_silent = True

    def fix(self) -> None:
        """Connect again; what was silent until now is disconnected."""
        if self._is_silent:
            self.cut()
        self._is_cut = self._is_silent = False

    def _request(self, known_as: RequestId) -> Request | None:
        return self._sent[known_as][1].request if known_as in self._sent else None

    def die(self, *, lands: int) -> None:
        """Of the writes on their way, the first few still arrive."""
        for request_id, call in self._sent.values():
            lands -= isinstance(call.request, Write)
            if lands < 0 or not isinstance(call.request, Write):
                self._realm.cancel(request_id)
        self._sent.clear()
        self._messages.clear()


def _loss(call: Call, lost: NoResponse) -> Message:
    if isinstance(call.request, Watch):
        return WatchEnded(call.request_id, lost)
    return Response(call.request_id, lost)


@dataclass
class SimulatedProcess:
    """One process, from its beginning to its end or its death.

    `dies_at`: the turn at whose end it is killed. `lands`: how many of its writes then still
    arrive.
    """

    world: ProcessWorld
    rollout: Story
    begins: Ms = Ms(0)
    dies_at: int = 0
    lands: int = 0
    turns: int = 0
    is_over: bool = False
    is_frozen: bool = False
    result: str = ""
    error: TidegateError | None = None

    def live(self, now: Ms) -> None:
        while not self.is_over and not self.is_frozen and self._is_awake(now):
            self._turn()
            if self.turns == self.dies_at and not self.is_over:
                self.kill()

    def freeze(self) -> None:
        self.is_frozen = True

    def thaw(self) -> None:
        self.is_frozen = False

    def kill(self) -> None:
        self.is_over = True
        self.result = "killed"
        self.world.die(lands=self.lands)
        self.rollout.close()

    @property
    def wakes(self) -> Ms | None:
        if self.is_frozen:
            return None
        return self.world.until if self.turns else self.begins

    def _is_awake(self, now: Ms) -> bool:
        return self.world.is_ready if self.turns else self.begins <= now

    def _turn(self) -> None:
        self.turns += 1
        try:
            self.rollout.send(None)
        except StopIteration as end:
            self.is_over, self.result = True, str(end.value)
        except TidegateError as error:
            self.is_over, self.error = True, error


@dataclass(frozen=True)
class Absence:
    """A process loses its connection for a while, or does nothing at all."""

    at: int
    seconds: int
    way: str

    def happenings(self, life: SimulatedProcess) -> list[Happening]:
        begins = Ms(START + self.at)
        ends = Ms(begins + self.seconds * SECOND)
        if self.way == "frozen":
            return [(begins, life.freeze), (ends, life.thaw)]
        leaves = life.world.cut if self.way == "cut" else life.world.silence
        return [(begins, leaves), (ends, life.world.fix)]


@dataclass
class ProcessEvents:
    """Events that stop, cut off or restart processes, with their times."""

    planned: list[tuple[Ms, int, Callable[[], None]]] = field(default_factory=list)

    @classmethod
    def from_happenings(cls, happenings: Iterable[Happening]) -> ProcessEvents:
        return cls(sorted((at, place, action) for place, (at, action) in enumerate(happenings)))

    def apply_due(self, now: Ms) -> None:
        while self.planned and self.planned[0][0] <= now:
            heapq.heappop(self.planned)[2]()

    @property
    def next(self) -> Ms | None:
        return self.planned[0][0] if self.planned else None


async def let_live(
    realm: SharedSandbox, processes: list[SimulatedProcess], happenings: Iterable[Happening] = ()
) -> None:
    """Let time pass until all these processes are over."""
    outside_events = ProcessEvents.from_happenings(happenings)
    ends = Ms(realm.now() + LONGEST)
    while True:
        outside_events.apply_due(realm.now())
        for life in processes:
            life.live(realm.now())
        left = [life for life in processes if not life.is_over]
        if not left:
            return
        if realm.now() >= ends:
            raise AssertionError(
                f"not at rest after {LONGEST} ms: {[item.world.name for item in left]}"
            )
        moments = [outside_events.next, *(life.wakes for life in left)]
        until = min((moment for moment in moments if moment is not None), default=ends)
        realm.hand_out(await realm.wait(min(until, ends)))


def spin(rollout: Coroutine[object, None, Returned]) -> Returned:
    """Run what waits for nothing but a realm: no event loop is needed."""
    while True:
        try:
            rollout.send(None)
        except StopIteration as end:
            came: Returned = end.value
            return came
