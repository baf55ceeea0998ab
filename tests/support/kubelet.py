"""A kubelet's log endpoint, on loopback: all that an API server needs to hand out pod logs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from tests.support.http_application import served


@dataclass
class LogEndpoint:
    """Lines by (namespace, pod, container), and those of the run before.

    `usual`: what every other container prints.
    """

    certificate: Path
    key: Path
    lines: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    before: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    usual: list[str] = field(default_factory=list)
    port: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LogEndpoint]:
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._print)
        async with served(app, certificate=self.certificate, key=self.key) as self.port:
            yield self

    async def _print(self, request: web.Request) -> web.Response:
        match = request.match_info
        runs = self.before if request.query.get("previous") == "true" else self.lines
        lines = runs.get((match["namespace"], match["pod"], match["container"]), self.usual)
        tail = int(request.query.get("tailLines", len(lines)))
        return web.Response(text="".join(f"{line}\n" for line in lines[-tail:]))
