"""Get one file from a web server, and keep it for when there is no network."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tidegate.source.access import Access, not_at_hand
from tidegate.source.cache import CachedTree
from tidegate.source.credentials import authorization
from tidegate.source.web.download import WebAsk, check_web_url, origin_of, shown, web_for

FILE = "file"
"""What the file is called in its tree."""


async def fetch_file(url: str, access: Access) -> CachedTree:
    """A tree of one file. It may be another one tomorrow, so it is asked for each time."""
    check_web_url(url)
    name = f"file {url}"
    async with access.cache.turn(name):
        if access.offline:
            known = access.cache.find(name)
            if known is None:
                raise not_at_hand(shown(url))
            return known
        credentials = access.keyring.find(origin_of(url))
        async with web_for(access, credentials) as web:
            got = await web.get(WebAsk(url=url, authorization=authorization(credentials)))

        async def fill(place: Path) -> None:
            await asyncio.to_thread((place / FILE).write_bytes, got.body)

        return await access.cache.keep(name, fill, shown=shown(url))
