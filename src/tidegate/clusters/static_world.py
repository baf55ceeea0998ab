"""A World for commands that read Git alone: clusters as they are new, which nothing changes.

The package of schemas answers which kinds exist. Nothing is simulated, so nothing can be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache

import msgspec

from tidegate.model.k8s.json_fields import object_ref
from tidegate.model.k8s.objects import Kind, LiveObject, Ref
from tidegate.model.times import SIMULATION_START, Ms
from tidegate.schema.builtin import kubernetes_release, served_kinds
from tidegate.world.messages import (
    ApiResources,
    Forbidden,
    ListPage,
    Message,
    NotFound,
    NotServed,
    Outcome,
    RawResponse,
    Response,
    Success,
    TimerFired,
)
from tidegate.world.requests import Call, Discover, Get, List, RawGet, Request, RequestId, Selection

VERSION_PATH = "/version"


class StaticWorld:
    """Clusters with the built-in kinds and the objects of a new cluster, at one moment."""

    def __init__(self, now: Ms | None = None) -> None:
        self._now = now or SIMULATION_START
        self._messages: list[Message] = []
        self._arrived = asyncio.Event()

    def now(self) -> Ms:
        return self._now

    def submit(self, call: Call) -> None:
        self._messages.append(Response(call.request_id, _answer(call.request)))
        self._arrived.set()

    def cancel(self, request_id: RequestId) -> bool:
        self._messages = [
            message
            for message in self._messages
            if not (isinstance(message, Response) and message.request_id == request_id)
        ]
        return True

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        if not self._messages and until is None:
            await self._arrived.wait()
        self._arrived.clear()
        messages, self._messages = tuple(self._messages), []
        if not messages and until is not None:
            self._now = max(self._now, until)
        return messages or (TimerFired(),)

    def wake(self) -> None:
        self._arrived.set()


def _answer(request: Request) -> Outcome:
    match request:
        case Discover():
            return ApiResources(served_kinds())
        case RawGet(path=path) if path == VERSION_PATH:
            return RawResponse(msgspec.json.encode({"gitVersion": kubernetes_release()}))
        case Get(ref=ref) if ref in _base_objects():
            return Success(_base_objects()[ref])
        case Get(ref=ref):
            return NotFound(f"{ref} not found") if _is_served(ref.kind) else _not_served(ref.kind)
        case List(selection=selection) if _is_served(selection.kind):
            return ListPage(tuple(_list_base_objects(selection)), "")
        case List(selection=selection):
            return _not_served(selection.kind)
        case _:
            return Forbidden("no cluster is selected")


def _is_served(kind: Kind) -> bool:
    return any(served.kind == kind for served in served_kinds())


def _not_served(kind: Kind) -> NotServed:
    return NotServed(f"{kind} is not served")


@cache
def _base_objects() -> dict[Ref, LiveObject]:
    """Return the objects that every new cluster has."""
    from tidegate.sandbox.bootstrap import load_base_objects

    bodies = {object_ref(body): body for body in load_base_objects()}
    return {
        ref: LiveObject(ref, "", 0, "", msgspec.json.encode(body)) for ref, body in bodies.items()
    }


def _list_base_objects(selection: Selection) -> Iterator[LiveObject]:
    """Yield the objects of a selection; none of them has labels."""
    if selection.label_selector or selection.field_selector:
        return
    for ref, live in _base_objects().items():
        if ref.kind == selection.kind and selection.namespace in {"", ref.namespace}:
            yield live
