"""Contents of the cache, and clearing it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.source import Cache, CacheEntryKind, CacheStats, default_cache_root

KINDS = tuple(kind.value for kind in CacheEntryKind)


NANOSECONDS_PER_SECOND = 1_000_000_000


class CacheSection(msgspec.Struct, frozen=True):
    """All cache entries of one kind.

    `oldest` and `newest`: seconds since the last use of the least and the most recently used
    entry.
    """

    kind: str
    count: int
    bytes: int
    oldest: int | None = None
    newest: int | None = None


class CacheContents(msgspec.Struct, frozen=True):
    """Contents of the whole cache."""

    root: str
    limit: int
    sections: tuple[CacheSection, ...]

    @property
    def bytes(self) -> int:
        return sum(section.bytes for section in self.sections)


class ClearResult(msgspec.Struct, frozen=True):
    """Numbers of removed entries and bytes, and of entries that stayed because they are in use."""

    removed: int
    bytes: int
    kept: int


def read_cache_contents() -> CacheContents:
    cache = Cache(default_cache_root())
    now = _file_system_time()
    sections = tuple(_cache_section(stats, now) for stats in cache.stats())
    return CacheContents(str(cache.root), cache.limit, sections)


def clear_cache(kinds: Iterable[str] = ()) -> ClearResult:
    """Remove all unused entries of these kinds, or of every kind."""
    selected = frozenset(map(CacheEntryKind, kinds)) or frozenset(CacheEntryKind)
    cache = Cache(default_cache_root())
    before = _count(cache, selected)
    freed = cache.clear(kinds=selected)
    after = _count(cache, selected)
    return ClearResult(before - after, freed, after)


def _count(cache: Cache, kinds: frozenset[CacheEntryKind]) -> int:
    return sum(stats.count for stats in cache.stats() if stats.kind in kinds)


def _cache_section(stats: CacheStats, now: int) -> CacheSection:
    if not stats.count:
        return CacheSection(stats.kind.value, 0, 0)
    oldest, newest = (
        max(0, (now - used) // NANOSECONDS_PER_SECOND)
        for used in (stats.oldest_use, stats.last_used)
    )
    return CacheSection(stats.kind.value, stats.count, stats.size, oldest, newest)


def _file_system_time() -> int:
    """Return the current time by the clock that sets access times of files."""
    with tempfile.TemporaryFile(dir=_writable_directory(default_cache_root())) as file:
        return os.fstat(file.fileno()).st_mtime_ns


def _writable_directory(path: Path) -> Path | None:
    return path if path.is_dir() and os.access(path, os.W_OK) else None
