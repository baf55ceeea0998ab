"""Trees of files by the digest of their content, each with a lock for its users."""

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
    """The file `record` beside a tree."""

    digest: str
    """The digest of the content."""
    files: tuple[str, ...]
    """The paths of the files."""
    size: int
    """Bytes of all files."""
    kind: CacheEntryKind = CacheEntryKind.SOURCES
    """The kind of the cache entry."""


class TreeStore:
    """Directory of all trees of a cache.

    Trees that were returned stay until `close`, or until the process ends.
    """

    def __init__(self, directory: Path, *, staging: Path) -> None:
        self._directory = directory
        self._staging = staging
        self._locks: dict[str, int] = {}
        self._guard = threading.Lock()

    async def make(self, fill: Fill, *, source_name: str, kind: CacheEntryKind) -> CachedTree:
        """Store the tree that `fill` writes into an empty directory; return it, or an equal one."""
        staged: Path | None = None
        lock: int | None = None
        try:
            for directory in (self._directory, self._staging):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            staged, lock = self._stage()
            (staged / "tree").mkdir()
            await fill(staged / "tree")
            return await asyncio.to_thread(self._install, staged, source_name, kind)
        except OSError as error:
            raise cache_error(self._directory, error) from error
        finally:
            if lock is not None:
                os.close(lock)
            if staged is not None:
                await asyncio.to_thread(shutil.rmtree, staged, ignore_errors=True)

    def _stage(self) -> tuple[Path, int]:
        """Make an empty directory and lock it; another process may remove it before it is locked.

        See `remove_leftovers`.
        """
        while True:
            staged = Path(tempfile.mkdtemp(dir=self._staging))
            lock = lock_file(staged / "lock", os.O_CREAT)
            if lock is not None and (staged / "lock").exists():
                return staged, lock
            if lock is not None:
                os.close(lock)

    def acquire(self, digest: str) -> CachedTree | None:
        """Lock the tree of a digest and return it; None without one.

        The lock must belong to the current tree: another process may have replaced it.
        """
        directory = self._tree_directory(digest)
        with self._guard:
            lock = self._locks.get(digest) or lock_file(directory / "lock")
            if lock is None:
                return None
            self._locks[digest] = lock
        try:
            locked, current = os.fstat(lock), (directory / "lock").stat()
            if locked.st_ino != current.st_ino:
                raise FileNotFoundError
            os.utime(directory / "lock")
            record = msgspec.json.decode((directory / "record").read_bytes(), type=_Record)
        except (OSError, msgspec.MsgspecError):
            self._release(digest)
            return None
        return CachedTree(directory / "tree", record.digest, record.files, record.size)

    def close(self) -> None:
        """Release every tree that was returned."""
        for digest in tuple(self._locks):
            self._release(digest)

    def entries(self) -> Iterator[CacheEntry]:
        """Yield the entries of the store."""
        for directory in list_directory(self._directory):
            with suppress(OSError, msgspec.MsgspecError):
                record = msgspec.json.decode((directory / "record").read_bytes(), type=_Record)
                yield CacheEntry(
                    (directory / "lock").stat().st_mtime_ns, directory, record.size, record.kind
                )

    def remove_leftovers(self) -> None:
        """Remove incomplete trees of killed processes."""
        for path in list_directory(self._staging):
            if path.is_dir():
                self.remove(path)

    def _install(self, staged: Path, source_name: str, kind: CacheEntryKind) -> CachedTree:
        """Check a staged tree and move it to its place, unless an equal one exists."""
        entries = walk_tree(staged / "tree")
        files = check_links(staged / "tree", entries, source_name)
        for entry in entries:
            if not entry.is_link:
                (staged / "tree" / entry.path).chmod(0o555 if entry.executable else 0o444)
        digest = digest_entries(staged / "tree", entries)
        record = _Record(digest, files, tree_size(entries), kind)
        (staged / "record").write_bytes(msgspec.json.encode(record))
        for _ in range(3):
            with suppress(OSError):
                staged.rename(self._tree_directory(digest))
            tree = self.acquire(digest)
            if tree is not None:
                return tree
        raise cache_error(self._directory, OSError("cannot replace an entry"))

    def _tree_directory(self, digest: str) -> Path:
        return self._directory / digest.rpartition(":")[2]

    def _release(self, digest: str) -> None:
        with self._guard:
            if (lock := self._locks.pop(digest, None)) is not None:
                os.close(lock)

    def remove(self, path: Path) -> bool:
        """Remove a tree unless it is in use; return whether it is gone."""
        lock = lock_file(path / "lock", exclusive=True)
        if lock is None:
            return False
        try:
            removed = self._staging / f"{path.name}.{os.getpid()}"
            path.rename(removed)
            shutil.rmtree(removed, ignore_errors=True)
        except OSError:
            return False
        finally:
            os.close(lock)
        return True


def lock_file(path: Path, flags: int = 0, *, exclusive: bool = False) -> int | None:
    """Lock a file without waiting; None if it is gone, or locked by another process."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
