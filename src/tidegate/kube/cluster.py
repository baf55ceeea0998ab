"""One real cluster: each request sent once, each reply as an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import TypeVar

from tidegate.kube import replies, requests
from tidegate.kube.transport import Flight, Transport
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind, Served
from tidegate.world import calls, facts

Asked = TypeVar("Asked", calls.Get, calls.List, calls.Write, calls.Logs)
Read = TypeVar("Read")


class KubeCluster:
    """A cluster's API: which kinds it serves is asked once, and again when one is not known."""

    def __init__(self, transport: Transport, *, watching: Ms) -> None:
        self._transport = transport
        self._watching = watching
        self._kinds: dict[Kind, Served] = {}
        self._catalogue = facts.Catalogue(())
        self._asking = asyncio.Lock()
        self._begun = 0
        self._finished = 0

    async def perform(
        self,
        request: calls.Get | calls.List | calls.Write | calls.Kinds | calls.Logs | calls.Http,
        flight: Flight,
    ) -> facts.Outcome:
        """Do what is asked, once."""
        match request:
            case calls.Get(ref=ref):
                return await self._send(
                    request, ref.kind, requests.get_request, replies.read_done, flight
                )
            case calls.List(selection=selection):
                return await self._send(
                    request, selection.kind, requests.list_request, replies.read_page, flight
                )
            case calls.Write(ref=ref):
                outcome = await self._send(
                    request, ref.kind, requests.write_request, replies.read_done, flight
                )
                return _another_life(outcome) if request.uid else outcome
            case calls.Logs(ref=ref):
                return await self._send(
                    request,
                    ref.kind,
                    requests.logs_request,
                    lambda reply, _: facts.Said(reply.body),
                    flight,
                )
            case calls.Kinds():
                return await self._discover()
            case calls.Http():
                reply = await self._transport.send(
                    requests.HttpRequest("GET", request.path, request.accept), flight
                )
                return _outcome(reply, lambda good: facts.Said(good.body))

    async def watch(
        self, ticket: calls.Ticket, request: calls.Watch, flight: Flight
    ) -> AsyncGenerator[facts.Changed | facts.Bookmark | facts.Ended]:
        """The events of one stream, the last of them its end."""
        kind = request.selection.kind
        served = await self._find(kind)
        if not isinstance(served, Served):
            yield facts.Ended(ticket, served)
            return
        lines = replies.LineSplitter()
        wanted = requests.watch_request(request, served, seconds=self._watching // SECOND)
        async with aclosing(self._transport.stream(wanted, flight)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, bytes):
                    yield facts.Ended(
                        ticket,
                        piece if isinstance(piece, facts.Lost) else replies.read_refusal(piece),
                    )
                    return
                for event in _events(lines, piece, ticket, kind):
                    yield event
                    if isinstance(event, facts.Ended):
                        return
        yield facts.Ended(ticket)

    async def _send(
        self,
        request: Asked,
        kind: Kind,
        build: Callable[[Asked, Served], requests.HttpRequest],
        read: Callable[[replies.Reply, Kind], facts.Done | facts.Listed | facts.Said],
        flight: Flight,
    ) -> facts.Outcome:
        served = await self._find(kind)
        if not isinstance(served, Served):
            return served
        reply = await self._transport.send(build(request, served), flight)
        outcome = _outcome(reply, lambda good: read(good, kind))
        if isinstance(outcome, facts.NotServed):
            self._kinds.pop(kind, None)
        return outcome

    async def _find(self, kind: Kind) -> Served | facts.Refusal:
        """How a kind is spoken of, asking the server where it is not known (yet)."""
        if served := self._kinds.get(kind):
            return served
        refreshed = await self._discover()
        if not isinstance(refreshed, facts.Catalogue):
            return refreshed
        return self._kinds.get(kind) or facts.NotServed(f"the server does not serve {kind}")

    async def _discover(self) -> facts.Catalogue | facts.Refusal:
        """Ask for all kinds. Who comes meanwhile shares only an asking that began after he came."""
        came = self._begun
        async with self._asking:
            if self._finished > came:
                return self._catalogue
            self._begun += 1
            found: list[Served] = []
            for root in replies.ROOTS:
                reply = await self._transport.send(
                    requests.HttpRequest("GET", root, replies.ACCEPT), Flight()
                )
                outcome = _outcome(reply, lambda good: facts.Catalogue(replies.read_kinds(good)))
                if not isinstance(outcome, facts.Catalogue):
                    return outcome
                found += outcome.kinds
            self._finished = self._begun
            self._catalogue = facts.Catalogue(tuple(found))
            self._kinds = {served.kind: served for served in reversed(found)}
            return self._catalogue


def _outcome(
    reply: replies.Reply | facts.Lost, read: Callable[[replies.Reply], Read]
) -> Read | facts.Refusal:
    """Read a good reply; a reply that cannot be read is no API server's."""
    if isinstance(reply, facts.Lost):
        return reply
    if not reply.is_good:
        return replies.read_refusal(reply)
    try:
        return read(reply)
    except replies.UNREADABLE_ERRORS as error:
        return _unreadable(reply.status, error)


def _unreadable(status: int, error: Exception) -> facts.Failed:
    """An object may be in there: of what was sent, nothing is said."""
    why = "too deeply nested" if isinstance(error, RecursionError) else str(error)
    return facts.Failed(status, "Unreadable", f"this is not an API server's answer: {why}")


def _events(
    lines: replies.LineSplitter, piece: bytes, ticket: calls.Ticket, kind: Kind
) -> Iterator[facts.Changed | facts.Bookmark | facts.Ended]:
    """The events of a piece; one that cannot be read is the end of its stream."""
    try:
        for line in lines.split(piece):
            yield replies.read_event(line, ticket, kind)
    except replies.UNREADABLE_ERRORS as error:
        yield facts.Ended(ticket, _unreadable(0, error))


def _another_life(outcome: facts.Outcome) -> facts.Outcome:
    """A uid that does not match is a conflict, also where the server calls the field immutable."""
    match outcome:
        case facts.Invalid(causes=(facts.Cause(field="metadata.uid"),)):
            return facts.Conflict(outcome.message)
        case _:
            return outcome
