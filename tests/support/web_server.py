"""An application of a test's own on loopback, without TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from threading import Thread

from aiohttp import web

from tests.support.http_application import hang_up


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


@contextmanager
def listening_beside(app: web.Application) -> Iterator[str]:
    """The same in a thread of its own, for a test that runs commands in its process."""
    future: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def listen() -> None:
        ended = asyncio.Event()
        async with listening(app) as url:
            future.set_result((url, asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    url, loop, ended = future.result()
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
