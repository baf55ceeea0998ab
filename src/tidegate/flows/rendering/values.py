"""Values files that lie at web addresses are fetched as sources are: bounded, and kept for offline.

A chart without a part of its values comes to other objects, so that nothing stands in for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.errors import Place, RenderError
from tidegate.flows.rendering.outcome import attempt_all, raise_all
from tidegate.flows.rendering.workshop import Workshop
from tidegate.model.release import ValuesFile, ValuesText
from tidegate.render.helm import RemoteValuesError, ValueFiles
from tidegate.render.helm.value_files import find_value_files, without_query
from tidegate.source import Access, fetch_file
from tidegate.source.web import FILE


async def find_values(
    entries: Iterable[str], among: ValueFiles, workshop: Workshop
) -> tuple[ValuesFile | ValuesText, ...]:
    """The layers that entries of `valueFiles` mean, with what lies elsewhere fetched."""
    entries = tuple(entries)
    try:
        return find_value_files(entries, among)
    except RemoteValuesError as error:
        fetched = await fetch_values(error.urls, workshop)
    return find_value_files(entries, msgspec.structs.replace(among, fetched=fetched))


async def fetch_values(urls: Iterable[str], workshop: Workshop) -> dict[str, str]:
    """The text at each address. What cannot be had is told, all of it."""
    access = await workshop.access(None)
    texts, errors = await attempt_all({url: _fetch_one(url, access) for url in urls})
    raise_all(tuple(errors.values()))
    return texts


async def _fetch_one(url: str, access: Access) -> str:
    tree = await fetch_file(url, access)
    return await asyncio.to_thread(_read, tree.root / FILE, without_query(url))


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problem = "the values that were fetched are not UTF-8"
        raise RenderError("render.helm.file", problem, where=Place(name)) from None
