"""One real cluster: each request sent once, each reply as an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

import msgspec

from tidegate.kube.discovery import ACCEPT, ROOTS, read_kinds
from tidegate.kube.replies import Reply, read_done, read_page, read_refusal
from tidegate.kube.requests import (
    HttpRequest,
    get_request,
    list_request,
    logs_request,
    watch_request,
    write_request,
)
from tidegate.kube.stream import LineSplitter, read_event
from tidegate.kube.transport import Flight, Transport
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind, Served
from tidegate.world.calls import (
    Get,
    Http,
    Kinds,
    List,
    Logs,
    Ticket,
    Watch,
    Write,
)
from tidegate.world.facts import (
    Bookmark,
    Catalogue,
    Cause,
    Changed,
    Conflict,
    Done,
    Ended,
    Failed,
    Invalid,
    Listed,
    Lost,
    NotServed,
    Outcome,
    Refusal,
    Said,
)

Asked = TypeVar("Asked", Get, List, Write, Logs)
Read = TypeVar("Read")


class KubeCluster:
    """A cluster's API: which kinds it serves is asked once, and again when one is not known."""

    def __init__(self, transport: Transport, *, watching: Ms) -> None:
        self._transport = transport
        self._watching = watching
        self._kinds: dict[Kind, Served] = {}
        self._catalogue = Catalogue(())
        self._asking = asyncio.Lock()
        self._begun = 0
        self._finished = 0

    async def perform(
        self, request: Get | List | Write | Kinds | Logs | Http, flight: Flight
    ) -> Outcome:
        """Do what is asked, once."""
        match request:
            case Get(ref=ref):
                return await self._send(request, ref.kind, get_request, read_done, flight)
            case List(selection=selection):
                return await self._send(request, selection.kind, list_request, read_page, flight)
            case Write(ref=ref):
                outcome = await self._send(request, ref.kind, write_request, read_done, flight)
                return _another_life(outcome) if request.uid else outcome
            case Logs(ref=ref):
                return await self._send(
                    request, ref.kind, logs_request, lambda reply, _: Said(reply.body), flight
                )
            case Kinds():
                return await self._discover()
            case Http():
                reply = await self._transport.send(
                    HttpRequest("GET", request.path, request.accept), flight
                )
                return _outcome(reply, lambda good: Said(good.body))

    async def watch(
        self, ticket: Ticket, request: Watch, flight: Flight
    ) -> AsyncGenerator[Changed | Bookmark | Ended]:
        """The events of one stream, the last of them its end."""
        kind = request.selection.kind
        served = await self._find(kind)
        if not isinstance(served, Served):
            yield Ended(ticket, served)
            return
        lines = LineSplitter()
        wanted = watch_request(request, served, seconds=self._watching // SECOND)
        async with aclosing(self._transport.stream(wanted, flight)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, bytes):
                    yield Ended(ticket, piece if isinstance(piece, Lost) else read_refusal(piece))
                    return
                for line in lines.split(piece):
                    event = read_event(line, ticket, kind)
                    yield event
                    if isinstance(event, Ended):
                        return
        yield Ended(ticket)

    async def _send(
        self,
        request: Asked,
        kind: Kind,
        build: Callable[[Asked, Served], HttpRequest],
        read: Callable[[Reply, Kind], Done | Listed | Said],
        flight: Flight,
    ) -> Outcome:
        served = await self._find(kind)
        if not isinstance(served, Served):
            return served
        reply = await self._transport.send(build(request, served), flight)
        outcome = _outcome(reply, lambda good: read(good, kind))
        if isinstance(outcome, NotServed):
            self._kinds.pop(kind, None)
        return outcome

    async def _find(self, kind: Kind) -> Served | Refusal:
        """How a kind is spoken of, asking the server where it is not known (yet)."""
        if served := self._kinds.get(kind):
            return served
        refreshed = await self._discover()
        if not isinstance(refreshed, Catalogue):
            return refreshed
        return self._kinds.get(kind) or NotServed(f"the server does not serve {kind}")

    async def _discover(self) -> Catalogue | Refusal:
        """Ask for all kinds. Who comes meanwhile shares only an asking that began after he came."""
        came = self._begun
        async with self._asking:
            if self._finished > came:
                return self._catalogue
            self._begun += 1
            found: list[Served] = []
            for root in ROOTS:
                reply = await self._transport.send(HttpRequest("GET", root, ACCEPT), Flight())
                outcome = _outcome(reply, lambda good: Catalogue(read_kinds(good)))
                if not isinstance(outcome, Catalogue):
                    return outcome
                found += outcome.kinds
            self._finished = self._begun
            self._catalogue = Catalogue(tuple(found))
            self._kinds = {served.kind: served for served in reversed(found)}
            return self._catalogue


def _outcome(reply: Reply | Lost, read: Callable[[Reply], Read]) -> Read | Refusal:
    """Read a good reply; a reply that cannot be read is no API server's."""
    if isinstance(reply, Lost):
        return reply
    if not reply.is_good:
        return read_refusal(reply)
    try:
        return read(reply)
    except msgspec.DecodeError as error:
        return Failed(reply.status, "Unreadable", f"this is not an API server's answer: {error}")


def _another_life(outcome: Outcome) -> Outcome:
    """A uid that does not match is a conflict, also where the server calls the field immutable."""
    match outcome:
        case Invalid(causes=(Cause(field="metadata.uid"),)):
            return Conflict(outcome.message)
        case _:
            return outcome
