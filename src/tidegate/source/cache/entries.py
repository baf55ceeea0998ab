"""Entries of the cache, their statistics, and a store of texts in small files."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from tidegate.errors import Location, SourceError, sanitize


class CacheEntryKind(StrEnum):
    """Kind of a cache entry."""

    SOURCES = "sources"
    """Trees of sources other than charts."""
    CHARTS = "charts"
    """Trees of charts."""
    RENDERS = "renders"
    """Rendered objects."""
    ANSWERS = "answers"
    """Responses of remotes: refs, tags, indexes."""


class CachedTree(msgspec.Struct, frozen=True):
    """A tree of files in the cache."""

    root: Path
    """The directory of the files."""
    digest: str
    """The digest of the content."""
    files: tuple[str, ...]
    """The paths of the files."""
    size: int
    """Bytes of all files."""


class CacheEntry(msgspec.Struct, frozen=True, order=True):
    """One entry of the cache; sorted by its last use."""

    used: int
    """Time of the last use, in nanoseconds of the file system's clock."""
    path: Path
    """The path of the entry."""
    size: int
    """The size in bytes."""
    kind: CacheEntryKind
    """The kind of the entry."""


class CacheStats(msgspec.Struct, frozen=True):
    """Statistics of all cache entries of one kind."""

    kind: CacheEntryKind
    """The kind of the entries."""
    count: int = 0
    """Number of entries."""
    size: int = 0
    """Bytes of all entries."""
    oldest_use: int = 0
    """Last use of the entry that was not used for the longest time, in nanoseconds."""
    last_used: int = 0
    """Last use of any entry, in nanoseconds."""


def compute_stats(kind: CacheEntryKind, entries: Iterable[CacheEntry]) -> CacheStats:
    """Return the statistics of the entries of one kind."""
    of_kind = [entry for entry in entries if entry.kind is kind]
    if not of_kind:
        return CacheStats(kind)
    used = [entry.used for entry in of_kind]
    return CacheStats(
        kind, len(of_kind), sum(entry.size for entry in of_kind), min(used), max(used)
    )


def list_directory(directory: Path) -> list[Path]:
    """Return the sorted paths in a directory; none if it cannot be read."""
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def cache_error(root: Path, error: OSError) -> SourceError:
    """Return the error for a cache directory that cannot be used."""
    problem = f"cannot use the cache: {sanitize(error.strerror or str(error))}"
    return SourceError("source.cache", problem, location=Location(str(root)))


class TextStore:
    """Directory of texts by name. File names are hashes, so a name can be any text."""

    def __init__(self, directory: Path, *, staging: Path, kind: CacheEntryKind) -> None:
        self._directory = directory
        self._staging = staging
        self._kind = kind

    def write(self, name: str, text: bytes) -> None:
        """Store a text by a name."""
        try:
            for directory in (self._directory, self._staging):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._staging, delete=False) as file:
                file.write(text)
            Path(file.name).replace(self._path(name))
        except OSError as error:
            raise cache_error(self._directory, error) from error

    def read(self, name: str) -> bytes | None:
        """Return the text of a name and mark it as used; None without one."""
        path = self._path(name)
        try:
            os.utime(path)
            return path.read_bytes()
        except OSError:
            return None

    def entries(self) -> Iterator[CacheEntry]:
        """Yield the entries of the store."""
        for path in list_directory(self._directory):
            with suppress(OSError):
                status = path.stat()
                yield CacheEntry(status.st_mtime_ns, path, status.st_size, self._kind)

    def remove(self, path: Path) -> bool:
        """Remove an entry; return whether it is gone.

        A text needs no lock: readers read it at once.
        """
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _path(self, name: str) -> Path:
        return self._directory / hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
