"""A proxy of ours between a client and a real API server, with faults on demand.

Has a certificate of the server's own authority and hands everything on, credentials included. A
policy sees each request before it goes and says what shall go wrong with it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.support.http_application import served
from tidegate.kube.transport import AbortingConnector

HOP_BY_HOP = {"transfer-encoding", "connection", "content-length", "content-encoding", "host"}


class Fault(StrEnum):
    NONE = "none"
    SERVER_ERROR = "the server says 500 and has done nothing"
    SERVER_ERROR_AFTER = "the server has done it, and says 500"
    THROTTLED = "the server says 429"
    DROPPED_BEFORE = "the connection dies before the request arrives"
    DROPPED_AFTER = "the connection dies when the server has done it"


@dataclass
class FaultyProxy:
    """What it does to whom, and what it has seen."""

    server: str
    ca: Path
    certificate: Path
    key: Path
    policy: Callable[[int, web.Request], Fault] = lambda _number, _request: Fault.NONE
    silent: bool = False
    """Open streams stay open, but nothing comes through any more."""
    url: str = ""
    seen: list[str] = field(default_factory=list)
    forwarded: list[str] = field(default_factory=list)
    _count: int = 0
    _session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FaultyProxy]:
        context = ssl.create_default_context(cafile=str(self.ca))
        connector = AbortingConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            app = web.Application(client_max_size=16 * 1024**2)
            app.router.add_route("*", "/{path:.*}", self._serve)
            async with served(app, certificate=self.certificate, key=self.key) as port:
                self.url = f"https://127.0.0.1:{port}"
                yield self

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self._count += 1
        self.seen.append(f"{request.method} {request.path}")
        match self.policy(self._count, request):
            case Fault.SERVER_ERROR:
                return web.Response(status=500, text="a fault of the test's own")
            case Fault.THROTTLED:
                return web.Response(status=429, headers={"Retry-After": "0"}, text="busy")
            case Fault.DROPPED_BEFORE:
                return self._hang_up(request)
            case Fault.DROPPED_AFTER:
                await self._forward(request, answer=False)
                return self._hang_up(request)
            case Fault.SERVER_ERROR_AFTER:
                await self._forward(request, answer=False)
                return web.Response(status=500, text="a fault of the test's own")
            case Fault.NONE:
                return await self._forward(request, answer=True)

    def _hang_up(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _forward(self, request: web.Request, *, answer: bool) -> web.StreamResponse:
        if self._session is None:
            raise RuntimeError("the proxy is not running")
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP}
        body = await request.read()
        self.forwarded.append(f"{request.method} {request.path}")
        async with self._session.request(
            request.method, f"{self.server}{request.raw_path}", data=body or None, headers=headers
        ) as reply:
            if not answer:
                await reply.read()
                return web.Response()
            return await self._hand_back(request, reply)

    async def _hand_back(
        self, request: web.Request, reply: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=reply.status)
        for name, value in reply.headers.items():
            if name.lower() not in HOP_BY_HOP - {"content-encoding"}:
                response.headers.add(name, value)
        await response.prepare(request)
        async for chunk in reply.content.iter_any():
            if self.silent and "watch=1" in request.query_string:
                await asyncio.Event().wait()
            await response.write(chunk)
        await response.write_eof()
        return response


def every(number: int, *faults: Fault) -> Callable[[int, web.Request], Fault]:
    """Each `number`th request has a fault, one after the other of these."""

    def policy(count: int, _request: web.Request) -> Fault:
        if count % number:
            return Fault.NONE
        return faults[(count // number) % len(faults)]

    return policy


def once(fault: Fault, method: str) -> Callable[[int, web.Request], Fault]:
    """The first request of this method has the fault."""
    left = [fault]

    def policy(_count: int, request: web.Request) -> Fault:
        return left.pop() if left and request.method == method else Fault.NONE

    return policy
