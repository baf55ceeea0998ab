"""A kubelet's log endpoint, on loopback: all that an API server needs to hand out pod logs."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web


@dataclass
class LogEndpoint:
    """Lines by (namespace, pod, container)."""

    certificate: Path
    key: Path
    lines: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    port: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LogEndpoint]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._print)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _print(self, request: web.Request) -> web.Response:
        spot = request.match_info
        lines = self.lines[spot["namespace"], spot["pod"], spot["container"]]
        tail = int(request.query.get("tailLines", len(lines)))
        return web.Response(text="".join(f"{line}\n" for line in lines[-tail:]))
