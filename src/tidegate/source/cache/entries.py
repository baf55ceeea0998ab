"""What the cache holds, as nouns; and texts by their names, in small files."""

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
    """What there is to keep."""

    SOURCES = "sources"
    CHARTS = "charts"
    RENDERS = "renders"
    ANSWERS = "answers"


class CachedTree(msgspec.Struct, frozen=True):
    """A tree in the cache."""

    root: Path
    digest: str
    files: tuple[str, ...]
    size: int


class CacheEntry(msgspec.Struct, frozen=True, order=True):
    """One thing in the cache; `used` is when, in nanoseconds of the file system's clock."""

    used: int
    path: Path
    size: int
    kind: CacheEntryKind


class CacheStats(msgspec.Struct, frozen=True):
    """All things of one kind: how many, how large, and when they were used."""

    kind: CacheEntryKind
    count: int = 0
    size: int = 0
    longest_unused: int = 0
    last_used: int = 0


def compute_stats(kind: CacheEntryKind, items: Iterable[CacheEntry]) -> CacheStats:
    mine = [item for item in items if item.kind is kind]
    if not mine:
        return CacheStats(kind)
    used = [item.used for item in mine]
    return CacheStats(kind, len(mine), sum(item.size for item in mine), min(used), max(used))


def list_directory(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def cache_error(root: Path, error: OSError) -> SourceError:
    problem = f"the cache cannot be used: {sanitize(error.strerror or str(error))}"
    return SourceError("source.cache", problem, location=Location(str(root)))


class TextStore:
    """One directory of texts. A name can be anything; only its hash is on disk."""

    def __init__(self, place: Path, *, making: Path, kind: CacheEntryKind) -> None:
        self._place = place
        self._making = making
        self._kind = kind

    def note(self, name: str, text: bytes) -> None:
        """Remember a text by a name."""
        try:
            for directory in (self._place, self._making):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._making, delete=False) as file:
                file.write(text)
            Path(file.name).replace(self._path(name))
        except OSError as error:
            raise cache_error(self._place, error) from error

    def recall(self, name: str) -> bytes | None:
        path = self._path(name)
        try:
            os.utime(path)
            return path.read_bytes()
        except OSError:
            return None

    def items(self) -> Iterator[CacheEntry]:
        for path in list_directory(self._place):
            with suppress(OSError):
                seen = path.stat()
                yield CacheEntry(seen.st_mtime_ns, path, seen.st_size, self._kind)

    def remove(self, path: Path) -> bool:
        """Whether it is gone. Nobody reads a text for longer than it takes to read it."""
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _path(self, name: str) -> Path:
        return self._place / hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
