"""Simulated clusters behind the door, and the one clock they share.

Time stands still until somebody waits, and then jumps to the next thing that will happen. It never
moves while local work is outstanding, since nobody can say how long that will take.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidegate.errors import ScenarioError
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.sandbox.agenda import Agenda
from tidegate.sandbox.cluster import Cluster, Timing
from tidegate.sandbox.controllers.foundations import API_CONTROLLERS
from tidegate.sandbox.controllers.reaction import Controller
from tidegate.sandbox.faults import (
    DISCONNECTED,
    CallEffect,
    Compact,
    Down,
    Drop,
    Edit,
    Fault,
    Faults,
    Lose,
    Refuse,
    Silence,
    Slow,
    TimedFault,
    Up,
)
from tidegate.sandbox.server.store import metadata_of, ref_of
from tidegate.world import facts
from tidegate.world.calls import Call, Local, Ticket, Verb, Watch, Write

Worker = Callable[[bytes], bytes]

START = Ms(1_767_225_600_000)
"""A sandbox begins with the year 2026, unless it is told otherwise."""
TYPICAL = Timing()


class Edited(NamedTuple):
    """What somebody else did to an object, and what became of it."""

    at: Ms
    cluster: str
    write: Write
    outcome: facts.Outcome


class Sandbox:
    """These clusters, in memory. Same seed, same calls: same facts, to the byte."""

    def __init__(  # noqa: PLR0913 - what a world is made of
        self,
        clusters: Iterable[str] = ("",),
        *,
        seed: int = 0,
        faults: Sequence[Fault] = (),
        workers: Mapping[str, Worker] | None = None,
        timing: Timing = TYPICAL,
        controllers: tuple[Controller, ...] = API_CONTROLLERS,
        start: Ms = START,
    ) -> None:
        self._clock = self.began = start
        self._agenda = Agenda()
        self._facts: list[facts.Fact] = []
        self._faults = Faults(faults, seed=seed, start=start)
        self._workers = workers or {}
        self._timing = timing
        self._under_way: dict[Ticket, Call] = {}
        self._watches: dict[Ticket, str] = {}
        self._local: deque[tuple[Ticket, asyncio.Future[bytes]]] = deque()
        self._waiting = False
        self._is_woken = False
        self.edits: list[Edited] = []
        """What others have done to objects until now."""
        self._seed = seed
        self.clusters: dict[str, Cluster] = {}
        for name in clusters:
            self.add_cluster(name, controllers)
        for moment in self._faults.moments():
            self._agenda.add(moment.at, self._happening(moment))

    def add_cluster(self, name: str, controllers: tuple[Controller, ...]) -> None:
        """One more cluster, empty; what befalls all clusters befalls it from now on."""
        self.clusters[name] = Cluster(
            f"{self._seed}/{name}",
            agenda=self._agenda,
            now=self.now,
            tell=self._tell,
            timing=self._timing,
            controllers=controllers,
        )

    def give(self, bodies: Iterable[dict[str, Json]], to: Iterable[str] | None = None) -> None:
        """Put objects into clusters, as if they had been there before anything else.

        Into every cluster where nobody says which.
        """
        names = tuple(self.clusters if to is None else to)
        for body in bodies:
            for cluster in map(self.clusters.__getitem__, names):
                outcome = cluster.give(creation(body))
                if facts.is_refusal(outcome):
                    name = metadata_of(body).get("name")
                    problem = f"{body.get('kind')} `{name}` cannot be given: {outcome.message}"
                    raise ScenarioError("scenario.given", problem)

    def now(self) -> Ms:
        return self._clock

    def next_edit(self) -> Ms | None:
        """When somebody else will do something to an object."""
        moments = self._faults.moments()
        coming = (one.at for one in moments if isinstance(one.effect, Edit))
        return min((at for at in coming if at > self._clock), default=None)

    def submit(self, call: Call) -> None:
        if isinstance(call.request, Local):
            self._work(call.ticket, call.request)
            return
        self._under_way[call.ticket] = call
        effects = self._faults.for_call(call, self._clock)
        slow = sum(effect.by for effect in effects if isinstance(effect, Slow))
        pause = self._timing.write if isinstance(call.request, Write) else self._timing.read
        self._agenda.add(Ms(self._clock + pause + slow), lambda: self._arrive(call, effects))

    def cancel(self, ticket: Ticket) -> bool:
        self._facts = [fact for fact in self._facts if getattr(fact, "ticket", None) != ticket]
        cluster = self._watches.pop(ticket, None)
        if cluster is not None:
            self.clusters[cluster].close(ticket)
        return self._under_way.pop(ticket, None) is not None

    async def wait(self, until: Ms | None) -> tuple[facts.Fact, ...]:
        if self._waiting:
            raise RuntimeError("a world has one waiter")
        self._waiting, self._is_woken = True, False
        try:
            # Others on this event loop, a signal's handler among them, get their turn.
            await asyncio.sleep(0)  # noqa: TID251
            while not self._facts and not self._is_woken:
                if self._local:
                    await self._finish_local()
                elif not self._advance(until):
                    break
        finally:
            self._waiting = False
        told, self._facts = tuple(self._facts), []
        return told or (facts.Due(),)

    def wake(self) -> None:
        self._is_woken = True

    def _advance(self, until: Ms | None) -> bool:
        """Move to the next thing that happens; False where the moment waited for is earlier."""
        due = self._agenda.next_moment()
        if due is None or (until is not None and due > until):
            if until is None:
                raise RuntimeError("nothing is under way: this wait would never end")
            self._clock = max(self._clock, until)
            return False
        self._clock = max(self._clock, due)
        while deed := self._agenda.take(self._clock):
            deed()
        return True

    def _tell(self, fact: facts.Fact) -> None:
        if isinstance(fact, facts.Ended):
            self._watches.pop(fact.ticket, None)
        self._facts.append(fact)

    def _arrive(self, call: Call, effects: tuple[CallEffect, ...]) -> None:
        """A call reaches its server, unless it was cancelled or lost on the way."""
        if self._under_way.pop(call.ticket, None) is not call:
            return
        if isinstance(call.request, Watch):
            self._open(call.ticket, call.cluster, call.request, effects)
            return
        for effect in effects:
            if isinstance(effect, Refuse):
                self._tell(facts.Answer(call.ticket, effect.outcome))
                return
            if isinstance(effect, Lose):
                if effect.performed:
                    self._perform(call)
                self._tell(facts.Answer(call.ticket, DISCONNECTED))
                return
        self._tell(facts.Answer(call.ticket, self._perform(call)))

    def _perform(self, call: Call) -> facts.Outcome:
        if isinstance(call.request, Watch | Local):
            raise TypeError(call.request)
        return self.clusters[call.cluster].server.perform(call.request)

    def _open(
        self, ticket: Ticket, name: str, watch: Watch, effects: tuple[CallEffect, ...]
    ) -> None:
        cluster = self.clusters[name]
        for effect in effects:
            if isinstance(effect, Refuse | Lose):
                refusal = effect.outcome if isinstance(effect, Refuse) else DISCONNECTED
                self._tell(facts.Ended(ticket, refusal))
                return
        self._watches[ticket] = name
        cluster.watch(ticket, watch)
        for effect in effects:
            if isinstance(effect, Drop | Silence):
                deed = self._stream_deed(cluster, ticket, effect)
                self._agenda.add(Ms(self._clock + effect.after), deed)

    def _stream_deed(
        self, cluster: Cluster, ticket: Ticket, effect: Drop | Silence
    ) -> Callable[[], None]:
        if isinstance(effect, Drop):
            return lambda: cluster.drop(ticket, DISCONNECTED)
        return lambda: cluster.silence(ticket, effect.span)

    def _happening(self, moment: TimedFault) -> Callable[[], None]:
        def deed() -> None:
            for name, cluster in self.clusters.items():
                if moment.when.covers_cluster(name):
                    self._befall(name, cluster, moment)

        return deed

    def _befall(self, name: str, cluster: Cluster, moment: TimedFault) -> None:
        match moment.effect:
            case Compact():
                cluster.server.compact()
            case Down():
                self._go_down(name, cluster)
            case Up():
                pass
            case Edit(write):
                outcome = cluster.server.perform(write)
                self.edits.append(Edited(self._clock, name, write, outcome))
            case Drop() | Silence() as effect:
                for stream in cluster.streams():
                    if moment.when.covers_watch(stream.selection, cluster=name):
                        self._stream_deed(cluster, stream.ticket, effect)()

    def _go_down(self, name: str, cluster: Cluster) -> None:
        for stream in cluster.streams():
            cluster.drop(stream.ticket, DISCONNECTED)
        lost = [call for call in self._under_way.values() if call.cluster == name]
        for call in lost:
            del self._under_way[call.ticket]
            if isinstance(call.request, Watch):
                self._tell(facts.Ended(call.ticket, DISCONNECTED))
            else:
                self._tell(facts.Answer(call.ticket, DISCONNECTED))

    def _work(self, ticket: Ticket, local: Local) -> None:
        worker = self._workers.get(local.name)
        if worker is None:
            self._tell(facts.Answer(ticket, facts.NotServed(f"nobody does `{local.name}` here")))
            return
        loop = asyncio.get_running_loop()
        self._local.append((ticket, loop.run_in_executor(None, worker, local.argument)))

    async def _finish_local(self) -> None:
        """Answers to local work come in the order in which it was handed out.

        Whoever waits may be cancelled, and the work still has its answer.
        """
        ticket, work = self._local[0]
        await asyncio.wait((work,))
        self._local.popleft()
        try:
            outcome: facts.Outcome = facts.Said(work.result())
        except Exception as error:  # noqa: BLE001 - a worker runs strangers' work
            outcome = facts.Failed(0, type(error).__name__, str(error))
        self._tell(facts.Answer(ticket, outcome))


def creation(body: dict[str, Json]) -> Write:
    """The write that creates an object as it is written down."""
    encoded = msgspec.json.encode(body)
    return Write(verb=Verb.CREATE, ref=ref_of(body), body=encoded, manager="given")
