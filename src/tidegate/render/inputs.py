"""Files that a cache key depends on, and whether they are unchanged.

A key is a digest of contents. If the stat fields of all recorded files are unchanged, the key is
known without reading the contents again. Nothing here outlives the process.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TypeAlias

import msgspec

MAX_KEYS = 4096
TIME_GRANULARITY = 2_000_000_000
"""Nanoseconds. A file that changed more recently may change again without a new time stamp."""
StatFields: TypeAlias = tuple[int, ...] | None
"""What the file system reports of a path; None if it does not exist."""


class StatLevel(Enum):
    """Which stat fields of a path are recorded."""

    __hash__ = object.__hash__  # fast; each member exists once

    CONTENT = "its content, with links resolved"
    IDENTITY = "its path, with links resolved"
    LINK = "its content or link target; for a directory, its path"


class CacheInputs(msgspec.Struct):
    """Paths that a cache key depends on, with their stat fields before reading."""

    stats: dict[tuple[str, StatLevel], StatFields] = msgspec.field(default_factory=dict)
    """The stat fields by path and level."""
    is_complete: bool = True
    """False if something was read that is not recorded here."""

    def record(self, path: str | Path, level: StatLevel = StatLevel.CONTENT) -> StatFields:
        """Record a path and return its stat fields.

        Must be called before reading, so that a change in between is noticed the next time.
        """
        key = (str(path), level)
        fields = self.stats.get(key)
        if fields is None and key not in self.stats:
            fields = self.stats[key] = _stat_fields(*key)
        return fields

    def is_unchanged(self) -> bool:
        """Return whether no recorded path has changed."""
        return all(_stat_fields(*key) == fields for key, fields in self.stats.items())

    def is_settled(self, now: int) -> bool:
        """Return whether any further change would be noticed."""
        known_fields = (fields for fields in self.stats.values() if fields is not None)
        return self.is_complete and all(
            max(fields[3:5], default=0) < now - TIME_GRANULARITY for fields in known_fields
        )


def file_system_time() -> int:
    """Return the time in nanoseconds, by the clock of the file system."""
    with tempfile.TemporaryFile() as file:
        return os.fstat(file.fileno()).st_mtime_ns


class KeyCache:
    """Cache keys of requests, each valid while its inputs are unchanged."""

    def __init__(
        self, *, now: Callable[[], int] = file_system_time, max_keys: int = MAX_KEYS
    ) -> None:
        self._now = now
        self._max_keys = max_keys
        self._keys: OrderedDict[bytes, tuple[CacheInputs, str]] = OrderedDict()

    def find(self, request: bytes, make: Callable[[CacheInputs], str]) -> str:
        """Return the key of a request: known, or computed by `make` from the current files.

        A request may contain secret values, so only its digest is kept.
        """
        name = hashlib.sha256(request).digest()
        inputs, key = self._keys.get(name, (None, ""))
        if inputs is not None and inputs.is_unchanged():
            self._keys.move_to_end(name)
            return key
        inputs = CacheInputs()
        key = make(inputs)
        self._keys.pop(name, None)
        if inputs.is_settled(self._now()):
            self._keys[name] = (inputs, key)
        if len(self._keys) > self._max_keys:
            self._keys.popitem(last=False)
        return key


def is_link(fields: StatFields) -> bool:
    """Return whether stat fields of level `LINK` are those of a link."""
    return fields is not None and stat.S_ISLNK(fields[2])


def _stat_fields(path: str, level: StatLevel) -> StatFields:
    """Return device, inode and mode; where the content counts, also times and size."""
    try:
        status = os.stat(path, follow_symlinks=level is not StatLevel.LINK)  # noqa: PTH116  (hot path)
    except (OSError, ValueError):
        return None
    identity = status.st_dev, status.st_ino, status.st_mode
    if level is StatLevel.IDENTITY or (level is StatLevel.LINK and stat.S_ISDIR(status.st_mode)):
        return identity
    return *identity, status.st_mtime_ns, status.st_ctime_ns, status.st_size
