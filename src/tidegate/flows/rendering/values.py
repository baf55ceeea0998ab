"""Remote values files, fetched like sources: bounded, and cached for offline use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.errors import Location, RenderError
from tidegate.flows.rendering.outcome import gather_results, raise_all
from tidegate.flows.rendering.workshop import RenderContext
from tidegate.model.release import ValuesFile, ValuesText
from tidegate.render.helm import RemoteValuesError, ValueFiles
from tidegate.render.helm.value_files import find_value_files, without_query
from tidegate.source import Access, fetch_file
from tidegate.source.web import FILE


async def find_values(
    entries: Iterable[str], value_files: ValueFiles, context: RenderContext
) -> tuple[ValuesFile | ValuesText, ...]:
    """Return the layers that entries of `valueFiles` name, with remote files fetched."""
    entries = tuple(entries)
    try:
        return find_value_files(entries, value_files)
    except RemoteValuesError as error:
        fetched = await fetch_values(error.urls, context)
    return find_value_files(entries, msgspec.structs.replace(value_files, fetched=fetched))


async def fetch_values(urls: Iterable[str], context: RenderContext) -> dict[str, str]:
    """Return the text at each URL. Raises all errors.

    A chart renders other objects without some of its values, so that nothing replaces missing ones.
    Files are fetched like sources: bounded, and cached for offline use.
    """
    options = await context.fetch_options(None)
    texts, errors = await gather_results({url: _fetch_values_file(url, options) for url in urls})
    raise_all(tuple(errors.values()))
    return texts


async def _fetch_values_file(url: str, options: Access) -> str:
    tree = await fetch_file(url, options)
    return await asyncio.to_thread(_read_values, tree.root / FILE, without_query(url))


def _read_values(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problem = "the values that were fetched are not UTF-8"
        raise RenderError("render.helm.file", problem, location=Location(name)) from None
