"""An application of a test's own on loopback, without TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.fakes.serving import hang_up


@asynccontextmanager
async def listening(app: web.Application) -> AsyncIterator[str]:
    """The address where the application listens."""
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        hang_up(runner)
        await runner.cleanup()
