"""One real cluster: sends each request once and returns each response as an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import TypeVar

from tidegate.kube import http_requests, http_responses
from tidegate.kube.transport import InFlightRequest, Transport
from tidegate.model.k8s.objects import Kind, ServedKind
from tidegate.model.times import SECOND, Ms
from tidegate.world import messages, requests

RequestT = TypeVar("RequestT", requests.Get, requests.List, requests.Write, requests.Logs)
ResultT = TypeVar("ResultT")


UNKNOWN_KIND_AGE = Ms(1 * SECOND)
"""Age of a discovery that is believed about a kind that it does not have.

A command requests the objects of several kinds that the cluster may not serve. Without this, each
request would run discovery again.
"""
DISCOVERED_KINDS = frozenset({"CustomResourceDefinition", "APIService"})
"""Kinds whose objects change what the cluster serves."""


class KubeCluster:
    """The API of one cluster. Discovery runs once, and again when a kind is not known."""

    def __init__(self, transport: Transport, *, watch_timeout: Ms) -> None:
        self._transport = transport
        self._watch_timeout = watch_timeout
        self._kinds: dict[Kind, ServedKind] = {}
        self._api_resources = messages.ApiResources(())
        self._discovery_lock = asyncio.Lock()
        self._discoveries_started = 0
        self._last_discovery = 0
        self._discovered_at: float | None = None

    async def perform(
        self,
        request: requests.Get
        | requests.List
        | requests.Write
        | requests.Discover
        | requests.Logs
        | requests.RawGet,
        in_flight: InFlightRequest,
    ) -> messages.Outcome:
        """Send a request, once, and return its outcome."""
        match request:
            case requests.Get(ref=ref):
                return await self._send(
                    request,
                    ref.kind,
                    http_requests.build_get,
                    http_responses.read_object,
                    in_flight,
                )
            case requests.List(selection=selection):
                return await self._send(
                    request,
                    selection.kind,
                    http_requests.build_list,
                    http_responses.read_list_page,
                    in_flight,
                )
            case requests.Write():
                return await self._write(request, in_flight)
            case requests.Logs(ref=ref):
                return await self._send(
                    request,
                    ref.kind,
                    http_requests.build_logs,
                    lambda success, _: messages.RawResponse(success.body),
                    in_flight,
                )
            case requests.Discover(max_age=max_age):
                if self._is_discovery_recent(max_age):
                    return self._api_resources
                return await self._discover()
            case requests.RawGet():
                response = await self._transport.send(
                    http_requests.HttpRequest("GET", request.path, request.accept), in_flight
                )
                return _read_outcome(response, lambda success: messages.RawResponse(success.body))

    async def watch(
        self, request_id: requests.RequestId, request: requests.Watch, in_flight: InFlightRequest
    ) -> AsyncGenerator[messages.WatchEvent | messages.Bookmark | messages.WatchEnded]:
        """Yield the events of one watch stream; the last one is `WatchEnded`."""
        kind = request.selection.kind
        served = await self._find_served_kind(kind)
        if not isinstance(served, ServedKind):
            yield messages.WatchEnded(request_id, served)
            return
        splitter = http_responses.LineSplitter()
        http_request = http_requests.build_watch(
            request, served, seconds=self._watch_timeout // SECOND
        )
        async with aclosing(self._transport.stream(http_request, in_flight)) as chunks:
            async for chunk in chunks:
                if not isinstance(chunk, bytes):
                    yield messages.WatchEnded(
                        request_id,
                        chunk
                        if isinstance(chunk, messages.NoResponse)
                        else http_responses.read_error(chunk),
                    )
                    return
                for event in _read_events(splitter, chunk, request_id, kind):
                    yield event
                    if isinstance(event, messages.WatchEnded):
                        return
        yield messages.WatchEnded(request_id)

    async def _send(
        self,
        request: RequestT,
        kind: Kind,
        build: Callable[[RequestT, ServedKind], http_requests.HttpRequest],
        read: Callable[
            [http_responses.HttpResponse, Kind],
            messages.Success | messages.ListPage | messages.RawResponse,
        ],
        in_flight: InFlightRequest,
    ) -> messages.Outcome:
        served = await self._find_served_kind(kind)
        if not isinstance(served, ServedKind):
            return served
        response = await self._transport.send(build(request, served), in_flight)
        outcome = _read_outcome(response, lambda success: read(success, kind))
        if isinstance(outcome, messages.NotServed):
            self._kinds.pop(kind, None)
        return outcome

    async def _write(self, request: requests.Write, in_flight: InFlightRequest) -> messages.Outcome:
        kind = request.ref.kind
        outcome = await self._send(
            request, kind, http_requests.build_write, http_responses.read_object, in_flight
        )
        if kind.name in DISCOVERED_KINDS:
            self._discovered_at = None
        return _with_uid_conflict(outcome) if request.uid else outcome

    async def _find_served_kind(self, kind: Kind) -> ServedKind | messages.ErrorOutcome:
        """Return the API resource of a kind. Runs discovery if the kind is not known."""
        if served := self._kinds.get(kind):
            return served
        if not self._is_discovery_recent(UNKNOWN_KIND_AGE):
            resources = await self._discover()
            if not isinstance(resources, messages.ApiResources):
                return resources
        return self._kinds.get(kind) or messages.NotServed(f"the server does not serve {kind}")

    def _is_discovery_recent(self, max_age: Ms) -> bool:
        """Return whether the last discovery is not older than this and still valid."""
        if self._discovered_at is None or not max_age:
            return False
        age = asyncio.get_running_loop().time() - self._discovered_at
        return age * SECOND <= max_age

    async def _discover(self) -> messages.ApiResources | messages.ErrorOutcome:
        """Discover all kinds.

        A caller that waits shares only a discovery that started after the caller asked for it.
        """
        started_before = self._discoveries_started
        async with self._discovery_lock:
            if self._last_discovery > started_before:
                return self._api_resources
            self._discoveries_started += 1
            started_at = asyncio.get_running_loop().time()
            kinds: list[ServedKind] = []
            for root in http_responses.DISCOVERY_ROOTS:
                response = await self._transport.send(
                    http_requests.HttpRequest("GET", root, http_responses.DISCOVERY_ACCEPT),
                    InFlightRequest(),
                )
                outcome = _read_outcome(
                    response,
                    lambda success: messages.ApiResources(
                        http_responses.read_served_kinds(success)
                    ),
                )
                if not isinstance(outcome, messages.ApiResources):
                    return outcome
                kinds += outcome.kinds
            self._last_discovery = self._discoveries_started
            self._discovered_at = started_at
            self._api_resources = messages.ApiResources(tuple(kinds))
            self._kinds = {served.kind: served for served in reversed(kinds)}
            return self._api_resources


def _read_outcome(
    response: http_responses.HttpResponse | messages.NoResponse,
    read: Callable[[http_responses.HttpResponse], ResultT],
) -> ResultT | messages.ErrorOutcome:
    """Return the outcome of a response. A response that cannot be decoded is a `ServerError`."""
    if isinstance(response, messages.NoResponse):
        return response
    if not response.is_success:
        return http_responses.read_error(response)
    try:
        return read(response)
    except http_responses.DECODE_ERRORS as error:
        return _unreadable_error(response.status, error)


def _unreadable_error(status: int, error: Exception) -> messages.ServerError:
    """Return the error for a response that cannot be decoded.

    The error does not contain the response, which may be an object.
    """
    reason = "too deeply nested" if isinstance(error, RecursionError) else str(error)
    return messages.ServerError(
        status, "Unreadable", f"the response is not from an API server: {reason}"
    )


def _read_events(
    splitter: http_responses.LineSplitter, chunk: bytes, request_id: requests.RequestId, kind: Kind
) -> Iterator[messages.WatchEvent | messages.Bookmark | messages.WatchEnded]:
    """Yield the events of a chunk. An event that cannot be decoded ends the stream."""
    try:
        for line in splitter.split(chunk):
            yield http_responses.read_event(line, request_id, kind)
    except http_responses.DECODE_ERRORS as error:
        yield messages.WatchEnded(request_id, _unreadable_error(0, error))


def _with_uid_conflict(outcome: messages.Outcome) -> messages.Outcome:
    """Return a UID that does not match as a conflict, even if the server calls the field
    immutable.
    """
    match outcome:
        case messages.Invalid(causes=(messages.Cause(field="metadata.uid"),)):
            return messages.Conflict(outcome.message)
        case _:
            return outcome
