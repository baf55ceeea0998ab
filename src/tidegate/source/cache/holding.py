"""What the cache holds, as nouns."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import msgspec

from tidegate.errors import Place, SourceError, foreign


class Kept(StrEnum):
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


class CacheItem(msgspec.Struct, frozen=True, order=True):
    """One thing in the cache; `used` is when, in nanoseconds of the file system's clock."""

    used: int
    path: Path
    size: int
    kind: Kept


class Holding(msgspec.Struct, frozen=True):
    """All things of one kind: how many, how large, and when they were used."""

    kind: Kept
    count: int = 0
    size: int = 0
    longest_unused: int = 0
    last_used: int = 0


def sum_up(kind: Kept, items: Iterable[CacheItem]) -> Holding:
    mine = [item for item in items if item.kind is kind]
    if not mine:
        return Holding(kind)
    used = [item.used for item in mine]
    return Holding(kind, len(mine), sum(item.size for item in mine), min(used), max(used))


def listed(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def unusable(root: Path, error: OSError) -> SourceError:
    problem = f"the cache cannot be used: {foreign(error.strerror or str(error))}"
    return SourceError("source.cache", problem, where=Place(str(root)))
