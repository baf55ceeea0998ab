"""A world with a running rollout, and a client of the same world for other changes.

Rollouts work while a test waits: a test does something to the cluster, waits until the rollout has
heard of it, and asserts the result. Nothing depends on speed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from msgspec import structs

from tests.support.builders import make_plan_from, make_unit
from tests.support.cluster_client import ClusterClient, require_items, require_live
from tests.support.objects import SECRET
from tests.support.rollout_runs import Run, with_policy
from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.engine.context import RolloutSettings
from tidegate.engine.driver import Driver
from tidegate.engine.messages import Refresh
from tidegate.health.judge import Judge
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import JsonObject, Kind, LiveObject, Ref
from tidegate.model.plans.plan import Plan, PlanFragment
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.model.units.semantics import TIDEGATE, Semantics
from tidegate.workers.jq import Jq
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import (
    ApiResources,
    Message,
    RawResponse,
    Response,
    TimerFired,
    WatchEvent,
)
from tidegate.world.protocol import World
from tidegate.world.requests import Call, RequestId, RunWorker, Selection
from tidegate.world.resilient import ResilientWorld

SHORT = Ms(300)
LONG = Ms(5 * MINUTE)
PATIENCE = Ms(40 * SECOND)
PATIENT = structs.replace(TIDEGATE, status_wait=LONG, settle_time=LONG, suspended_timeout=LONG)
"""Nothing is believed, and nothing given up, because time has passed."""
HASTY = structs.replace(TIDEGATE, status_wait=SHORT, settle_time=SHORT, suspended_timeout=SHORT)
"""What needs a while to count counts soon."""


class Listener(Driver):
    """A running rollout whose events can be awaited."""

    def __init__(
        self, world: Dispatcher, plan: Plan, settings: RolloutSettings, run: Run, jq: Jq
    ) -> None:
        super().__init__(
            world, plan, DefaultEvaluator(Judge.from_rows(()), jq=jq), settings, run.events.append
        )
        self.latest: dict[Ref, LiveObject] = {}

    def process(self, message: Message) -> None:
        super().process(message)
        if isinstance(message, WatchEvent):
            self.latest[message.live.ref] = message.live


class RunningRollout:
    """A running rollout in its own task."""

    def __init__(self, world: Dispatcher, driver: Listener, run: Run) -> None:
        self.run = run
        self.patience = PATIENCE
        self._world = world
        self._client = world.client()
        self._driver = driver
        driver.open()
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def waits(self, reason: str, *, message: str = "") -> Event:
        """The first event that says that a gate waits for this reason, in these words."""
        await self._until(lambda: bool(self._waits(reason, message)))
        return self._waits(reason, message)[0]

    async def waits_for(self, name: str) -> Event:
        """The first event that says that a gate waits for the object of this name."""

        def matching_events() -> list[Event]:
            waits = self.run.events_of(EventType.GATE_WAITING)
            return [event for event in waits if event.ref and event.ref.name == name]

        await self._until(lambda: bool(matching_events()))
        return matching_events()[0]

    async def emits(self, result: EventType) -> Event:
        """The first event of this kind."""
        await self._until(lambda: bool(self.run.events_of(result)))
        return self.run.events_of(result)[0]

    async def observes(self, live: LiveObject) -> None:
        """Wait until it knows of this state of an object, or of a later one."""

        def is_known() -> bool:
            known = self._driver.latest.get(live.ref)
            return known is not None and int(known.resource_version) >= int(live.resource_version)

        await self._until(is_known)

    async def ends(self) -> Run:
        await self._until(lambda: self._driver.closed)
        self.run.result = self._driver.result
        return self.run

    def goes_on_with(self, plan: Plan) -> None:
        """Continue with a newer plan, as after a new commit."""
        self._driver.supersede(plan)

    async def stops(self) -> None:
        """Let it end before it is done."""
        self._driver.stop("the test wants it so")
        assert (await self.ends()).result == "stopped"

    @property
    def is_open(self) -> bool:
        """Whether any gate has opened."""
        return bool(self.run.events_of(EventType.GATE_OPENED))

    async def _work(self) -> None:
        try:
            while not self._driver.closed:
                await self._driver.run_once()
                self._client.wake()
        finally:
            self._client.wake()

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait for a claim about this rollout; one that has ended makes no more of them true."""
        deadline = Ms(self._world.now() + self.patience)
        while not holds():
            if self._task.done():
                self._task.result()
            if self._driver.closed or self._world.now() >= deadline:
                raise AssertionError(
                    f"condition not reached; the last events: {self._last_events()}"
                )
            await self._client.wait(deadline)

    def _last_events(self) -> str:
        last = self.run.events[-6:]
        return "; ".join(f"{item.type} {item.ref or item.step} {item.reason}" for item in last)

    def _waits(self, reason: str, result: str) -> list[Event]:
        waits = self.run.events_of(EventType.GATE_WAITING)
        return [event for event in waits if event.reason == reason and result in event.message]


class FilteredWorld:
    """A line that may hide kinds and keep news back. It has the methods of a world itself."""

    def __init__(self, world: World) -> None:
        self.hidden: set[Kind] = set()
        """Kinds that discovery does not tell of yet."""
        self.yields: dict[str, PlanFragment] = {}
        """What steps expand to."""
        self._line = ResilientWorld(world)
        self._last = self._held = RequestId(0)
        self._kept: list[Message] = []

    def now(self) -> Ms:
        return self._line.now()

    def submit(self, call: Call) -> None:
        self._last = call.request_id
        if isinstance(call.request, RunWorker):
            yielded = self.yields[call.request.argument.decode()]
            self._kept.append(Response(call.request_id, RawResponse(msgspec.json.encode(yielded))))
            self._line.wake()
        else:
            self._line.submit(call)

    def cancel(self, request_id: RequestId) -> bool:
        return self._line.cancel(request_id)

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        if self._held or not self._kept:
            self._kept += map(self._hide, await self._line.wait(until))
        messages, self._kept = (
            self._kept,
            [message for message in self._kept if self._is_held(message)],
        )
        return tuple(message for message in messages if not self._is_held(message)) or (
            TimerFired(),
        )

    def wake(self) -> None:
        self._line.wake()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Who asked before hears of nothing in here, and of everything afterwards, in order."""
        self._held = self._last
        try:
            yield
        finally:
            self._held = RequestId(0)
        self._line.wake()

    def _is_held(self, message: Message) -> bool:
        return not isinstance(message, TimerFired) and message.request_id <= self._held

    def _hide(self, message: Message) -> Message:
        match message:
            case Response(outcome=ApiResources(kinds)) if self.hidden:
                shown = tuple(served for served in kinds if served.kind not in self.hidden)
                return Response(message.request_id, ApiResources(shown))
            case _:
                return message


class Stage:
    """One namespace of a world. Its name is that of the unit which is rolled out there."""

    def __init__(self, world: World, namespace: str) -> None:
        self.namespace = namespace
        self.world = FilteredWorld(world)
        self.dispatcher = Dispatcher(self.world)
        self._begun = 0
        self.client = ClusterClient(self.dispatcher, namespace=namespace)
        self.jq = Jq()

    def start(
        self, *waves: JsonObject | tuple[JsonObject, ...], semantics: Semantics = PATIENT
    ) -> RunningRollout:
        """Start a rollout of a unit of these waves; objects of `default` move to this namespace."""
        return self.start_plan(with_policy(self.plan(*waves), semantics=semantics))

    def start_plan(
        self, plan: Plan, refresher: Callable[[Refresh], None] | None = None
    ) -> RunningRollout:
        """Begin to roll out a plan; each rollout of a world has a name of its own.

        `refresher` is asked before a unit is tried again that wants to be read anew.
        """
        self._begun += 1
        name = f"{self.namespace}-rollout-{self._begun}"
        run, settings = Run(), RolloutSettings(holder=name, request_refresh=refresher)
        listener = Listener(self.dispatcher, plan, settings, run, self.jq)
        return RunningRollout(self.dispatcher, listener, run)

    async def roll_out(
        self, *waves: JsonObject | tuple[JsonObject, ...], semantics: Semantics = PATIENT
    ) -> Run:
        return await self.start(*waves, semantics=semantics).ends()

    def plan(self, *waves: JsonObject | tuple[JsonObject, ...]) -> Plan:
        moved = [
            tuple(self.here(body) for body in (wave if isinstance(wave, tuple) else (wave,)))
            for wave in waves
        ]
        return make_plan_from(make_unit(*moved, name=self.namespace))

    def here(self, body: JsonObject) -> JsonObject:
        if get_text(body, "metadata", "namespace") != "default":
            return body
        return {**body, "metadata": {**get_mapping(body, "metadata"), "namespace": self.namespace}}

    async def ref(self, body: JsonObject) -> Ref:
        return await self.client.ref(self.here(body))

    async def live(self, body: JsonObject) -> LiveObject:
        return require_live(await self.client.get(await self.ref(body)))

    async def says(self, body: JsonObject, status: JsonObject) -> LiveObject:
        """Write an object's status, as its controller would."""
        ref = await self.ref(body)
        written = await self.client.patch(
            ref, {"status": status}, subresource="status", manager="controller"
        )
        return require_live(written)

    async def forgets(self) -> None:
        """Take the journal of the unit away."""
        labels = f"tidegate.dev/unit={self.namespace}"
        selection = Selection(SECRET, "tidegate-system", label_selector=labels)
        items = require_items(await self.client.page(selection))
        assert items
        for live in items:
            await self.client.delete(live.ref)
