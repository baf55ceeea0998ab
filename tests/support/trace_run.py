"""Run a case with a client of any World, and record the states of its objects."""

from __future__ import annotations

import msgspec

from tests.support.cluster_client import ClusterClient, require_live
from tests.support.trace_case import (
    Action,
    Apply,
    Case,
    Pause,
    Remove,
    Until,
    UntilGone,
    WatchedObject,
)
from tests.support.trace_case import Change as Patched
from tests.support.trace_states import State, StateReader
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import Message, NotFound, WatchEvent, WatchEventType
from tidegate.world.requests import RequestId, Selection

Trace = dict[str, list[State]]
REST = Ms(2 * SECOND)
"""So long nothing must be heard before a case is over."""


class TraceRun:
    """One case under way."""

    def __init__(self, case: Case, client: ClusterClient) -> None:
        self._case = case
        self._client = client
        self._readers = {watched: StateReader() for watched in case.watched}
        self._tickets: dict[RequestId, WatchedObject] = {}
        self._bodies: dict[WatchedObject, JsonObject | None] = {}
        self._generations: dict[WatchedObject, int] = {}

    async def run(self) -> Trace:
        for watched in self._case.watched:
            fields = f"metadata.name={watched.name}"
            selection = Selection(watched.kind, self._client.namespace, field_selector=fields)
            self._tickets[self._client.watch(selection)] = watched
        for action in self._case.actions:
            await self._do(action)
        await self._pass(REST)
        return {str(watched): reader.states for watched, reader in self._readers.items()}

    async def _do(self, action: Action) -> None:
        match action:
            case Apply():
                live = require_live(await self._client.apply(action.body))
                self._generations[WatchedObject(live.ref.kind, live.ref.name)] = live.generation
            case Patched():
                live = require_live(
                    await self._client.patch(self._ref(action.object), action.patch)
                )
                self._generations[action.object] = live.generation
            case Remove():
                outcome = await self._client.delete(self._ref(action.object))
                assert not isinstance(outcome, NotFound)
            case Until():
                await self._wait_for(lambda: self._holds(action), action.within)
            case UntilGone():
                await self._wait_for(lambda: self._is_gone(action.object), Ms(60 * SECOND))
            case Pause():
                await self._pass(action.span)

    async def _wait_for(self, claim: object, within: Ms) -> None:
        assert callable(claim)

        def is_done(message: Message) -> bool:
            self._note(message)
            return bool(claim())

        if not claim():
            await self._client.until(is_done, within=within)

    async def _pass(self, span: Ms) -> None:
        """Hear whatever comes until then."""
        world = self._client.world
        until = Ms(world.now() + span)

        def is_done(message: Message) -> bool:
            self._note(message)
            return False

        try:
            await self._client.until(is_done, within=span)
        except AssertionError:
            assert world.now() >= until

    def _note(self, message: Message) -> None:
        if isinstance(message, WatchEvent) and message.request_id in self._tickets:
            watched = self._tickets[message.request_id]
            gone = message.type is WatchEventType.DELETED
            body: JsonObject | None = None if gone else msgspec.json.decode(message.live.body)
            self._bodies[watched] = body
            self._readers[watched].read(body)

    def _holds(self, action: Until) -> bool:
        body = self._bodies.get(action.object)
        if body is None:
            return False
        metadata = body["metadata"]
        assert isinstance(metadata, dict)
        generation = metadata.get("generation", 0)
        assert isinstance(generation, int)
        return generation >= self._generations.get(action.object, 0) and action.claim(body)

    def _is_gone(self, watched: WatchedObject) -> bool:
        return watched in self._bodies and self._bodies[watched] is None

    def _ref(self, watched: WatchedObject) -> Ref:
        return Ref(watched.kind, self._client.namespace, watched.name)


async def trace(case: Case, client: ClusterClient) -> Trace:
    """The states of the case's objects, each in its order."""
    return await TraceRun(case, client).run()
