"""The cache: trees by name, texts by name, and one size limit for all of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

from tidegate.source.cache.entries import (
    CachedTree,
    CacheEntry,
    CacheEntryKind,
    CacheStats,
    TextStore,
    compute_stats,
)
from tidegate.source.cache.trees import Fill, TreeStore
from tidegate.source.tree import MIB

DEFAULT_LIMIT = 2048 * MIB
LAYOUT = "1"
EVERYTHING = frozenset(CacheEntryKind)


def default_cache_root() -> Path:
    """Return the directory of the cache: below `XDG_CACHE_HOME` or `~/.cache`."""
    cache_home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache_home) if Path(cache_home).is_absolute() else Path.home() / ".cache"
    return base / "tidegate"


class Cache:
    """A directory that processes share.

    Trees that were returned stay until `close`, or until the process ends.
    """

    def __init__(self, root: Path, *, limit: int = DEFAULT_LIMIT) -> None:
        self.root = root
        self.limit = limit
        base = root / f"v{LAYOUT}"
        staging = base / "making"
        self._trees = TreeStore(base / "trees", staging=staging)
        self._answers = TextStore(base / "notes", staging=staging, kind=CacheEntryKind.ANSWERS)
        self.renders = TextStore(base / "renders", staging=staging, kind=CacheEntryKind.RENDERS)
        self._stores: dict[CacheEntryKind, TreeStore | TextStore] = {
            CacheEntryKind.SOURCES: self._trees,
            CacheEntryKind.CHARTS: self._trees,
            CacheEntryKind.ANSWERS: self._answers,
            CacheEntryKind.RENDERS: self.renders,
        }
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, name: str) -> asyncio.Lock:
        """Return the lock of a name: within a process, one task at a time fetches a source."""
        return self._locks.setdefault(name, asyncio.Lock())

    def find(self, name: str) -> CachedTree | None:
        """Return the tree of this name; None without one."""
        digest = self.read_text(name)
        return self._trees.acquire(digest.decode()) if digest else None

    async def find_or_store(self, name: str, fill: Fill, *, source_name: str) -> CachedTree:
        """Return the tree of this name; without one, `fill` creates it."""
        return self.find(name) or await self.store(name, fill, source_name=source_name)

    async def store(
        self,
        name: str,
        fill: Fill,
        *,
        source_name: str,
        kind: CacheEntryKind = CacheEntryKind.SOURCES,
    ) -> CachedTree:
        """Create a tree with `fill`, which gets an empty directory, and store it by this name.

        `source_name` names the source in errors.
        """
        tree = await self._trees.make(fill, source_name=source_name, kind=kind)
        self.write_text(name, tree.digest.encode())
        await asyncio.to_thread(self.shrink)
        return tree

    def write_text(self, name: str, text: bytes) -> None:
        """Store the text of a response by this name, over an earlier one."""
        self._answers.write(name, text)

    def read_text(self, name: str) -> bytes | None:
        """Return the text that was stored by this name; None without one."""
        return self._answers.read(name)

    def stats(self) -> tuple[CacheStats, ...]:
        """Return the statistics of each kind of entry."""
        entries = list(self._entries())
        return tuple(compute_stats(kind, entries) for kind in CacheEntryKind)

    def shrink(
        self, limit: int | None = None, *, kinds: frozenset[CacheEntryKind] = EVERYTHING
    ) -> int:
        """Remove the least recently used entries until the rest is within the limit.

        Only entries of these kinds are counted and removed. Returns the number of freed bytes.
        """
        limit = self.limit if limit is None else limit
        entries = sorted(entry for entry in self._entries() if entry.kind in kinds)
        total, freed = sum(entry.size for entry in entries), 0
        for entry in entries:
            if total - freed > limit and self._stores[entry.kind].remove(entry.path):
                freed += entry.size
        self._trees.remove_leftovers()
        return freed

    def clear(self, *, kinds: frozenset[CacheEntryKind] = EVERYTHING) -> int:
        """Remove all entries of these kinds that no process uses."""
        return self.shrink(limit=-1, kinds=kinds)

    def close(self) -> None:
        """Release every tree that was returned."""
        self._trees.close()

    def _entries(self) -> Iterator[CacheEntry]:
        for store in dict.fromkeys(self._stores.values()):
            yield from store.entries()
