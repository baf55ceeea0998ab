"""Simulated clusters with a common clock, for the `World` protocol.

The clock does not move until a client waits, and then jumps to the next event. It does not move
while local work is running, because the duration of that work is unknown.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidegate.errors import ScenarioError
from tidegate.model.k8s.objects import Json
from tidegate.model.times import SIMULATION_START, Ms
from tidegate.sandbox.cluster import Cluster, ServerTiming
from tidegate.sandbox.controllers.core import API_CONTROLLERS
from tidegate.sandbox.controllers.interface import Controller
from tidegate.sandbox.event_queue import EventQueue
from tidegate.sandbox.faults import (
    DISCONNECTED,
    CallEffect,
    Compaction,
    Delay,
    Edit,
    Fault,
    FaultInjector,
    Outage,
    Recovery,
    Rejection,
    ResponseLoss,
    StreamDrop,
    StreamSilence,
    TimedFault,
)
from tidegate.sandbox.server.store import get_metadata, ref_from_body
from tidegate.world import messages
from tidegate.world.requests import Call, RequestId, RunWorker, Verb, Watch, Write

Worker = Callable[[bytes], bytes]
START = SIMULATION_START
DEFAULT_TIMING = ServerTiming()


class EditRecord(NamedTuple):
    """An edit of an object by the scenario, and its outcome."""

    at: Ms
    """The time of the edit."""
    cluster: str
    """The cluster."""
    write: Write
    """The write."""
    outcome: messages.Outcome
    """The outcome of the write."""


class Sandbox:
    """Simulated clusters in memory. The same seed and calls give the same messages."""

    def __init__(
        self,
        clusters: Iterable[str] = ("",),
        *,
        seed: int = 0,
        faults: Sequence[Fault] = (),
        workers: Mapping[str, Worker] | None = None,
        timing: ServerTiming = DEFAULT_TIMING,
        controllers: tuple[Controller, ...] = API_CONTROLLERS,
        start: Ms = START,
    ) -> None:
        self._clock = self.started_at = start
        self._queue = EventQueue()
        self._messages: list[messages.Message] = []
        self._faults = FaultInjector(faults, seed=seed, start=start)
        self._workers = workers or {}
        self._timing = timing
        self._in_flight: dict[RequestId, Call] = {}
        self._watches: dict[RequestId, str] = {}
        self._local_work: deque[tuple[RequestId, asyncio.Future[bytes]]] = deque()
        self._is_waiting = False
        self._is_woken = False
        self.edits: list[EditRecord] = []
        """Edits by the scenario so far."""
        self._seed = seed
        self.clusters: dict[str, Cluster] = {}
        for name in clusters:
            self.add_cluster(name, controllers)
        for timed_fault in self._faults.timed_faults():
            self._queue.add(timed_fault.at, self._fault_callback(timed_fault))

    def add_cluster(self, name: str, controllers: tuple[Controller, ...]) -> None:
        """Add an empty cluster. Faults for all clusters apply to it from now on."""
        self.clusters[name] = Cluster(
            f"{self._seed}/{name}",
            queue=self._queue,
            now=self.now,
            emit=self._emit,
            timing=self._timing,
            controllers=controllers,
        )

    def preload(
        self, bodies: Iterable[dict[str, Json]], cluster_names: Iterable[str] | None = None
    ) -> None:
        """Create objects as if they existed before the simulation, by default in every cluster.

        Raises ScenarioError if a server rejects an object.
        """
        names = tuple(self.clusters if cluster_names is None else cluster_names)
        for body in bodies:
            for cluster in map(self.clusters.__getitem__, names):
                outcome = cluster.preload(to_create_write(body))
                if messages.is_error(outcome):
                    name = get_metadata(body).get("name")
                    problem = f"{body.get('kind')} `{name}` cannot be created: {outcome.message}"
                    raise ScenarioError("scenario.given", problem)

    def now(self) -> Ms:
        return self._clock

    def next_edit(self) -> Ms | None:
        """Return the time of the next edit by the scenario, or None."""
        timed_faults = self._faults.timed_faults()
        times = (
            timed_fault.at for timed_fault in timed_faults if isinstance(timed_fault.effect, Edit)
        )
        return min((at for at in times if at > self._clock), default=None)

    def submit(self, call: Call) -> None:
        if isinstance(call.request, RunWorker):
            self._start_local_work(call.request_id, call.request)
            return
        self._in_flight[call.request_id] = call
        effects = self._faults.effects_for_call(call, self._clock)
        extra_latency = sum(effect.duration for effect in effects if isinstance(effect, Delay))
        latency = (
            self._timing.write_latency
            if isinstance(call.request, Write)
            else self._timing.read_latency
        )
        self._queue.add(
            Ms(self._clock + latency + extra_latency), lambda: self._receive(call, effects)
        )

    def cancel(self, request_id: RequestId) -> bool:
        self._messages = [
            message
            for message in self._messages
            if getattr(message, "request_id", None) != request_id
        ]
        cluster = self._watches.pop(request_id, None)
        if cluster is not None:
            self.clusters[cluster].close_stream(request_id)
        return self._in_flight.pop(request_id, None) is not None

    async def wait(self, until: Ms | None) -> tuple[messages.Message, ...]:
        if self._is_waiting:
            raise RuntimeError("a world has one waiter")
        self._is_waiting, self._is_woken = True, False
        try:
            # Other tasks of this event loop, such as signal handlers, run now.
            await asyncio.sleep(0)  # noqa: TID251
            while not self._messages and not self._is_woken:
                if self._local_work:
                    await self._finish_local_work()
                elif not self._advance(until):
                    break
        finally:
            self._is_waiting = False
        received, self._messages = tuple(self._messages), []
        return received or (messages.TimerFired(),)

    def wake(self) -> None:
        self._is_woken = True

    def _advance(self, until: Ms | None) -> bool:
        """Move the clock to the next event; return False if `until` comes first."""
        due = self._queue.next_time()
        if due is None or (until is not None and due > until):
            if until is None:
                raise RuntimeError("no operation is in progress: this wait would never end")
            self._clock = max(self._clock, until)
            return False
        self._clock = max(self._clock, due)
        while callback := self._queue.pop_due(self._clock):
            callback()
        return True

    def _emit(self, message: messages.Message) -> None:
        if isinstance(message, messages.WatchEnded):
            self._watches.pop(message.request_id, None)
        self._messages.append(message)

    def _receive(self, call: Call, effects: tuple[CallEffect, ...]) -> None:
        """Deliver a call to its server, unless it was cancelled or is lost."""
        if self._in_flight.pop(call.request_id, None) is not call:
            return
        if isinstance(call.request, Watch):
            self._open_watch(call.request_id, call.cluster, call.request, effects)
            return
        for effect in effects:
            if isinstance(effect, Rejection):
                self._emit(messages.Response(call.request_id, effect.outcome))
                return
            if isinstance(effect, ResponseLoss):
                if effect.is_performed:
                    self._perform(call)
                self._emit(messages.Response(call.request_id, DISCONNECTED))
                return
        self._emit(messages.Response(call.request_id, self._perform(call)))

    def _perform(self, call: Call) -> messages.Outcome:
        if isinstance(call.request, Watch | RunWorker):
            raise TypeError(call.request)
        return self.clusters[call.cluster].server.perform(call.request)

    def _open_watch(
        self, request_id: RequestId, name: str, watch: Watch, effects: tuple[CallEffect, ...]
    ) -> None:
        cluster = self.clusters[name]
        for effect in effects:
            if isinstance(effect, Rejection | ResponseLoss):
                refusal = effect.outcome if isinstance(effect, Rejection) else DISCONNECTED
                self._emit(messages.WatchEnded(request_id, refusal))
                return
        self._watches[request_id] = name
        cluster.watch(request_id, watch)
        for effect in effects:
            if isinstance(effect, StreamDrop | StreamSilence):
                callback = self._stream_callback(cluster, request_id, effect)
                self._queue.add(Ms(self._clock + effect.after), callback)

    def _stream_callback(
        self, cluster: Cluster, request_id: RequestId, effect: StreamDrop | StreamSilence
    ) -> Callable[[], None]:
        if isinstance(effect, StreamDrop):
            return lambda: cluster.end_stream(request_id, DISCONNECTED)
        return lambda: cluster.silence_stream(request_id, effect.duration)

    def _fault_callback(self, timed_fault: TimedFault) -> Callable[[], None]:
        def apply_to_clusters() -> None:
            for name, cluster in self.clusters.items():
                if timed_fault.when.matches_cluster(name):
                    self._apply_fault(name, cluster, timed_fault)

        return apply_to_clusters

    def _apply_fault(self, name: str, cluster: Cluster, timed_fault: TimedFault) -> None:
        match timed_fault.effect:
            case Compaction():
                cluster.server.compact()
            case Outage():
                self._disconnect_clients(name, cluster)
            case Recovery():
                pass
            case Edit(write):
                outcome = cluster.server.perform(write)
                self.edits.append(EditRecord(self._clock, name, write, outcome))
            case StreamDrop() | StreamSilence() as effect:
                for stream in cluster.list_streams():
                    if timed_fault.when.matches_watch(stream.selection, cluster=name):
                        self._stream_callback(cluster, stream.request_id, effect)()

    def _disconnect_clients(self, name: str, cluster: Cluster) -> None:
        for stream in cluster.list_streams():
            cluster.end_stream(stream.request_id, DISCONNECTED)
        lost_calls = [call for call in self._in_flight.values() if call.cluster == name]
        for call in lost_calls:
            del self._in_flight[call.request_id]
            if isinstance(call.request, Watch):
                self._emit(messages.WatchEnded(call.request_id, DISCONNECTED))
            else:
                self._emit(messages.Response(call.request_id, DISCONNECTED))

    def _start_local_work(self, request_id: RequestId, local: RunWorker) -> None:
        worker = self._workers.get(local.name)
        if worker is None:
            self._emit(
                messages.Response(request_id, messages.NotServed(f"no worker for `{local.name}`"))
            )
            return
        loop = asyncio.get_running_loop()
        self._local_work.append((request_id, loop.run_in_executor(None, worker, local.argument)))

    async def _finish_local_work(self) -> None:
        """Wait for the oldest local work, and emit its response. Responses keep the order of the
        calls.

        The waiting client can be cancelled; the response is emitted nevertheless.
        """
        request_id, work = self._local_work[0]
        await asyncio.wait((work,))
        self._local_work.popleft()
        try:
            outcome: messages.Outcome = messages.RawResponse(work.result())
        except Exception as error:  # noqa: BLE001 - a worker runs strangers' work
            outcome = messages.ServerError(0, type(error).__name__, str(error))
        self._emit(messages.Response(request_id, outcome))


def to_create_write(body: dict[str, Json]) -> Write:
    """Return the write that creates an object from its manifest."""
    encoded = msgspec.json.encode(body)
    return Write(verb=Verb.CREATE, ref=ref_from_body(body), body=encoded, manager="given")
