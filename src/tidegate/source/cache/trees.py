"""Trees of files by the digest of what is in them, each with a lock for those who use it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.source.cache.entries import (
    CachedTree,
    CacheEntry,
    CacheEntryKind,
    cache_error,
    list_directory,
)
from tidegate.source.tree import check_links, digest_entries, tree_size, walk_tree

Fill: TypeAlias = Callable[[Path], Awaitable[None]]


class _Record(msgspec.Struct, frozen=True):
    digest: str
    files: tuple[str, ...]
    size: int
    kind: CacheEntryKind = CacheEntryKind.SOURCES


class TreeStore:
    """All trees of a cache. What is handed out stays until `close`, or the end of the process."""

    def __init__(self, place: Path, *, making: Path) -> None:
        self._place = place
        self._making = making
        self._held: dict[str, int] = {}
        self._guard = threading.Lock()

    async def make(self, fill: Fill, *, shown: str, kind: CacheEntryKind) -> CachedTree:
        """A new tree, or the one that is the same; `fill` is given an empty directory."""
        made: Path | None = None
        lock: int | None = None
        try:
            for directory in (self._place, self._making):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=self._making))
            lock = lock_file(made / "lock", os.O_CREAT)
            (made / "tree").mkdir()
            await fill(made / "tree")
            return await asyncio.to_thread(self._settle, made, shown, kind)
        except OSError as error:
            raise cache_error(self._place, error) from error
        finally:
            if lock is not None:
                os.close(lock)
            if made is not None:
                await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)

    def take(self, digest: str) -> CachedTree | None:
        """Hold the tree's lock, and make sure that it is the lock of the tree that is there."""
        place = self._place_of(digest)
        with self._guard:
            lock = self._held.get(digest) or lock_file(place / "lock")
            if lock is None:
                return None
            self._held[digest] = lock
        try:
            seen, now = os.fstat(lock), (place / "lock").stat()
            if seen.st_ino != now.st_ino:
                raise FileNotFoundError
            os.utime(place / "lock")
            record = msgspec.json.decode((place / "record").read_bytes(), type=_Record)
        except (OSError, msgspec.MsgspecError):
            self._let_go(digest)
            return None
        return CachedTree(place / "tree", record.digest, record.files, record.size)

    def close(self) -> None:
        """Let go of every tree that was handed out."""
        for digest in tuple(self._held):
            self._let_go(digest)

    def items(self) -> Iterator[CacheEntry]:
        for place in list_directory(self._place):
            with suppress(OSError, msgspec.MsgspecError):
                record = msgspec.json.decode((place / "record").read_bytes(), type=_Record)
                yield CacheEntry(
                    (place / "lock").stat().st_mtime_ns, place, record.size, record.kind
                )

    def tidy(self) -> None:
        """Remove what processes that were killed have left half made."""
        for path in list_directory(self._making):
            if path.is_dir():
                self.remove(path)

    def _settle(self, made: Path, shown: str, kind: CacheEntryKind) -> CachedTree:
        """Look at what was made and move it to its place, unless it is there already."""
        entries = walk_tree(made / "tree")
        files = check_links(made / "tree", entries, shown)
        for entry in entries:
            if not entry.is_link:
                (made / "tree" / entry.path).chmod(0o555 if entry.executable else 0o444)
        digest = digest_entries(made / "tree", entries)
        record = _Record(digest, files, tree_size(entries), kind)
        (made / "record").write_bytes(msgspec.json.encode(record))
        for _ in range(3):
            with suppress(OSError):
                made.rename(self._place_of(digest))
            tree = self.take(digest)
            if tree is not None:
                return tree
        raise cache_error(self._place, OSError("a tree in it cannot be replaced"))

    def _place_of(self, digest: str) -> Path:
        return self._place / digest.rpartition(":")[2]

    def _let_go(self, digest: str) -> None:
        with self._guard:
            if (lock := self._held.pop(digest, None)) is not None:
                os.close(lock)

    def remove(self, path: Path) -> bool:
        """Whether it is gone: not what somebody uses."""
        lock = lock_file(path / "lock", alone=True)
        if lock is None:
            return False
        try:
            doomed = self._making / f"{path.name}.{os.getpid()}"
            path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        except OSError:
            return False
        finally:
            os.close(lock)
        return True


def lock_file(path: Path, flags: int = 0, *, alone: bool = False) -> int | None:
    """Lock a file without waiting; nothing if it is gone, or held by someone else."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
