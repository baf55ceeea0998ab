"""The cache as its users see it: trees by name, texts by name, and one bound for all of it."""

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
    """Where caches live on this system, by the usual variable."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "tidegate"


class Cache:
    """One directory, shared. Trees handed out stay until `close`, or the end of the process."""

    def __init__(self, root: Path, *, limit: int = DEFAULT_LIMIT) -> None:
        self.root = root
        self.limit = limit
        base = root / f"v{LAYOUT}"
        making = base / "making"
        self._trees = TreeStore(base / "trees", making=making)
        self._answers = TextStore(base / "notes", making=making, kind=CacheEntryKind.ANSWERS)
        self.renders = TextStore(base / "renders", making=making, kind=CacheEntryKind.RENDERS)
        self._parts: dict[CacheEntryKind, TreeStore | TextStore] = {
            CacheEntryKind.SOURCES: self._trees,
            CacheEntryKind.CHARTS: self._trees,
            CacheEntryKind.ANSWERS: self._answers,
            CacheEntryKind.RENDERS: self.renders,
        }
        self._turns: dict[str, asyncio.Lock] = {}

    def turn(self, name: str) -> asyncio.Lock:
        """Within this process, one at a time fetches the same thing."""
        return self._turns.setdefault(name, asyncio.Lock())

    def find(self, name: str) -> CachedTree | None:
        """The tree that goes by this name."""
        note = self.recall(name)
        return self._trees.take(note.decode()) if note else None

    async def find_or_keep(self, name: str, fill: Fill, *, shown: str) -> CachedTree:
        """The tree that goes by this name; made where there is none."""
        return self.find(name) or await self.keep(name, fill, shown=shown)

    async def keep(
        self, name: str, fill: Fill, *, shown: str, kind: CacheEntryKind = CacheEntryKind.SOURCES
    ) -> CachedTree:
        """Make a tree with `fill`, which is given an empty directory, and keep it by this name.

        `shown` is how errors call the source.
        """
        tree = await self._trees.make(fill, shown=shown, kind=kind)
        self.note(name, tree.digest.encode())
        await asyncio.to_thread(self.shrink)
        return tree

    def note(self, name: str, text: bytes) -> None:
        """Remember what somebody answered by a name; the last one counts."""
        self._answers.note(name, text)

    def recall(self, name: str) -> bytes | None:
        return self._answers.recall(name)

    def holdings(self) -> tuple[CacheStats, ...]:
        """What is in it, kind by kind."""
        items = list(self._items())
        return tuple(compute_stats(kind, items) for kind in CacheEntryKind)

    def shrink(
        self, limit: int | None = None, *, kinds: frozenset[CacheEntryKind] = EVERYTHING
    ) -> int:
        """Remove what was used least recently until the rest is within the limit.

        Gives the number of bytes that are free again. Only these kinds are counted and removed.
        """
        limit = self.limit if limit is None else limit
        items = sorted(item for item in self._items() if item.kind in kinds)
        total, freed = sum(item.size for item in items), 0
        for item in items:
            if total - freed > limit and self._parts[item.kind].remove(item.path):
                freed += item.size
        self._trees.tidy()
        return freed

    def clear(self, *, kinds: frozenset[CacheEntryKind] = EVERYTHING) -> int:
        """Remove all of these kinds that nobody uses now."""
        return self.shrink(limit=-1, kinds=kinds)

    def close(self) -> None:
        """Let go of every tree that was handed out."""
        self._trees.close()

    def _items(self) -> Iterator[CacheEntry]:
        for part in dict.fromkeys(self._parts.values()):
            yield from part.items()
