"""An application of a test's own, served on loopback for as long as a block lasts."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web


@asynccontextmanager
async def served(app: web.Application, *, certificate: Path, key: Path) -> AsyncIterator[int]:
    """The port where the application listens, with TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        hang_up(runner)
        await runner.cleanup()


def hang_up(runner: web.AppRunner) -> None:
    """Closing in good order would wait for clients that may be gone, longer than a test lasts."""
    for connection in runner.server.connections if runner.server else ():
        if connection.transport is not None:
            connection.transport.abort()
