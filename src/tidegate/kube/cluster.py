"""One real cluster: sends each request once and returns each response as an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import TypeVar

from tidegate.kube import replies, requests
from tidegate.kube.transport import InFlightRequest, Transport
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind, ServedKind
from tidegate.world import calls, facts

RequestT = TypeVar("RequestT", calls.Get, calls.List, calls.Write, calls.Logs)
ResultT = TypeVar("ResultT")


class KubeCluster:
    """The API of one cluster. Discovery runs once, and again when a kind is not known."""

    def __init__(self, transport: Transport, *, watch_timeout: Ms) -> None:
        self._transport = transport
        self._watch_timeout = watch_timeout
        self._kinds: dict[Kind, ServedKind] = {}
        self._api_resources = facts.ApiResources(())
        self._discovery_lock = asyncio.Lock()
        self._discoveries_started = 0
        self._last_discovery = 0

    async def perform(
        self,
        request: calls.Get | calls.List | calls.Write | calls.Discover | calls.Logs | calls.RawGet,
        in_flight: InFlightRequest,
    ) -> facts.Outcome:
        """Send a request, once, and return its outcome."""
        match request:
            case calls.Get(ref=ref):
                return await self._send(
                    request, ref.kind, requests.build_get, replies.read_object, in_flight
                )
            case calls.List(selection=selection):
                return await self._send(
                    request, selection.kind, requests.build_list, replies.read_list_page, in_flight
                )
            case calls.Write(ref=ref):
                outcome = await self._send(
                    request, ref.kind, requests.build_write, replies.read_object, in_flight
                )
                return _with_uid_conflict(outcome) if request.uid else outcome
            case calls.Logs(ref=ref):
                return await self._send(
                    request,
                    ref.kind,
                    requests.build_logs,
                    lambda success, _: facts.RawResponse(success.body),
                    in_flight,
                )
            case calls.Discover():
                return await self._discover()
            case calls.RawGet():
                response = await self._transport.send(
                    requests.HttpRequest("GET", request.path, request.accept), in_flight
                )
                return _read_outcome(response, lambda success: facts.RawResponse(success.body))

    async def watch(
        self, request_id: calls.RequestId, request: calls.Watch, in_flight: InFlightRequest
    ) -> AsyncGenerator[facts.WatchEvent | facts.Bookmark | facts.WatchEnded]:
        """Yield the events of one watch stream; the last one is `WatchEnded`."""
        kind = request.selection.kind
        served = await self._find_served_kind(kind)
        if not isinstance(served, ServedKind):
            yield facts.WatchEnded(request_id, served)
            return
        splitter = replies.LineSplitter()
        http_request = requests.build_watch(request, served, seconds=self._watch_timeout // SECOND)
        async with aclosing(self._transport.stream(http_request, in_flight)) as chunks:
            async for chunk in chunks:
                if not isinstance(chunk, bytes):
                    yield facts.WatchEnded(
                        request_id,
                        chunk if isinstance(chunk, facts.NoResponse) else replies.read_error(chunk),
                    )
                    return
                for event in _read_events(splitter, chunk, request_id, kind):
                    yield event
                    if isinstance(event, facts.WatchEnded):
                        return
        yield facts.WatchEnded(request_id)

    async def _send(
        self,
        request: RequestT,
        kind: Kind,
        build: Callable[[RequestT, ServedKind], requests.HttpRequest],
        read: Callable[
            [replies.HttpResponse, Kind], facts.Success | facts.ListPage | facts.RawResponse
        ],
        in_flight: InFlightRequest,
    ) -> facts.Outcome:
        served = await self._find_served_kind(kind)
        if not isinstance(served, ServedKind):
            return served
        response = await self._transport.send(build(request, served), in_flight)
        outcome = _read_outcome(response, lambda success: read(success, kind))
        if isinstance(outcome, facts.NotServed):
            self._kinds.pop(kind, None)
        return outcome

    async def _find_served_kind(self, kind: Kind) -> ServedKind | facts.ErrorOutcome:
        """Return the API resource of a kind. Runs discovery if the kind is not known."""
        if served := self._kinds.get(kind):
            return served
        resources = await self._discover()
        if not isinstance(resources, facts.ApiResources):
            return resources
        return self._kinds.get(kind) or facts.NotServed(f"the server does not serve {kind}")

    async def _discover(self) -> facts.ApiResources | facts.ErrorOutcome:
        """Discover all kinds. A caller that waits shares only a discovery that started after it
        came.
        """
        started_before = self._discoveries_started
        async with self._discovery_lock:
            if self._last_discovery > started_before:
                return self._api_resources
            self._discoveries_started += 1
            kinds: list[ServedKind] = []
            for root in replies.DISCOVERY_ROOTS:
                response = await self._transport.send(
                    requests.HttpRequest("GET", root, replies.DISCOVERY_ACCEPT), InFlightRequest()
                )
                outcome = _read_outcome(
                    response, lambda success: facts.ApiResources(replies.read_served_kinds(success))
                )
                if not isinstance(outcome, facts.ApiResources):
                    return outcome
                kinds += outcome.kinds
            self._last_discovery = self._discoveries_started
            self._api_resources = facts.ApiResources(tuple(kinds))
            self._kinds = {served.kind: served for served in reversed(kinds)}
            return self._api_resources


def _read_outcome(
    response: replies.HttpResponse | facts.NoResponse,
    read: Callable[[replies.HttpResponse], ResultT],
) -> ResultT | facts.ErrorOutcome:
    """Return the outcome of a response. A response that cannot be decoded is a `ServerError`."""
    if isinstance(response, facts.NoResponse):
        return response
    if not response.is_success:
        return replies.read_error(response)
    try:
        return read(response)
    except replies.DECODE_ERRORS as error:
        return _unreadable_error(response.status, error)


def _unreadable_error(status: int, error: Exception) -> facts.ServerError:
    """Return the error for a response that cannot be decoded.

    The error does not contain the response, which may be an object.
    """
    reason = "too deeply nested" if isinstance(error, RecursionError) else str(error)
    return facts.ServerError(status, "Unreadable", f"this is not an API server's answer: {reason}")


def _read_events(
    splitter: replies.LineSplitter, chunk: bytes, request_id: calls.RequestId, kind: Kind
) -> Iterator[facts.WatchEvent | facts.Bookmark | facts.WatchEnded]:
    """Yield the events of a chunk. An event that cannot be decoded ends the stream."""
    try:
        for line in splitter.split(chunk):
            yield replies.read_event(line, request_id, kind)
    except replies.DECODE_ERRORS as error:
        yield facts.WatchEnded(request_id, _unreadable_error(0, error))


def _with_uid_conflict(outcome: facts.Outcome) -> facts.Outcome:
    """Return a UID that does not match as a conflict, even if the server calls the field
    immutable.
    """
    match outcome:
        case facts.Invalid(causes=(facts.Cause(field="metadata.uid"),)):
            return facts.Conflict(outcome.message)
        case _:
            return outcome
