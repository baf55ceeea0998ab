"""What the cache holds, and how to empty it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.source import Cache, Holding, Kept, default_cache_root

KINDS = tuple(kind.value for kind in Kept)
SECOND = 1_000_000_000


class ShelfContents(msgspec.Struct, frozen=True):
    """All things of one kind. Ages are seconds since the last use, of the oldest and the newest."""

    kind: str
    count: int
    bytes: int
    oldest: int | None = None
    newest: int | None = None


class Contents(msgspec.Struct, frozen=True):
    """The whole cache."""

    root: str
    limit: int
    shelves: tuple[ShelfContents, ...]

    @property
    def bytes(self) -> int:
        return sum(shelf.bytes for shelf in self.shelves)


class Cleared(msgspec.Struct, frozen=True):
    """How much is gone, and how much stayed because somebody uses it."""

    removed: int
    bytes: int
    kept: int


def look_into_cache() -> Contents:
    cache = Cache(default_cache_root())
    now = _file_system_time()
    shelves = tuple(_shelf(holding, now) for holding in cache.holdings())
    return Contents(str(cache.root), cache.limit, shelves)


def clear_cache(kinds: Iterable[str] = ()) -> Cleared:
    """Remove all that nobody uses, of these kinds or of every kind."""
    wanted = frozenset(map(Kept, kinds)) or frozenset(Kept)
    cache = Cache(default_cache_root())
    before = _count(cache, wanted)
    freed = cache.clear(kinds=wanted)
    after = _count(cache, wanted)
    return Cleared(before - after, freed, after)


def _count(cache: Cache, kinds: frozenset[Kept]) -> int:
    return sum(holding.count for holding in cache.holdings() if holding.kind in kinds)


def _shelf(holding: Holding, now: int) -> ShelfContents:
    if not holding.count:
        return ShelfContents(holding.kind.value, 0, 0)
    oldest, newest = (
        max(0, (now - used) // SECOND) for used in (holding.longest_unused, holding.last_used)
    )
    return ShelfContents(holding.kind.value, holding.count, holding.size, oldest, newest)


def _file_system_time() -> int:
    """Now, by the clock that also says when a file was used."""
    with tempfile.TemporaryFile(dir=_existing(default_cache_root())) as file:
        return os.fstat(file.fileno()).st_mtime_ns


def _existing(place: Path) -> Path | None:
    return place if place.is_dir() and os.access(place, os.W_OK) else None
