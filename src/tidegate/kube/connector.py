"""Connections that are hung up at once.

A goodbye over TLS in good order waits for the other side, which may be silent or go on talking.
Until then the connection stays open, perhaps longer than whoever asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey


class AbruptConnector(aiohttp.TCPConnector):
    """Aborts what cannot be used again; the rest is kept for the next request."""

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        if (should_close or protocol.should_close) and protocol.transport is not None:
            protocol.transport.abort()
        super()._release(key, protocol, should_close=should_close)
