"""What was looked at to find the key of a render, and whether all of it is still as it was.

A key is a digest of contents. Where nothing that was looked at has changed by what the file system
says of it, the contents need not be read again to know the key. That is asked each time; nothing
here outlives the process.
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

MOST_KEYS = 4096
RACE = 2_000_000_000
"""Nanoseconds. What changed just now may change again without a new time: clocks of file systems
are that coarse."""
StatFields: TypeAlias = tuple[int, ...] | None
"""What a file system says of a path; nothing where there is nothing."""


class StatLevel(Enum):
    """How closely a path is looked at."""

    __hash__ = object.__hash__  # it is hot, and each is there once

    CONTENT = "what is in it, behind all links"
    PLACE = "which one it is, behind all links"
    LINK = "what is in it, or in the link itself; of a directory, which one it is"


class CacheInputs(msgspec.Struct):
    """Paths with what was seen of them, before anything was read there."""

    seen: dict[tuple[str, StatLevel], StatFields] = msgspec.field(default_factory=dict)
    is_whole: bool = True
    """False where something was looked at that is not here."""

    def note(self, path: str | Path, look: StatLevel = StatLevel.CONTENT) -> StatFields:
        """To be called first and read then: a change in between is noticed the next time."""
        key = (str(path), look)
        known = self.seen.get(key)
        if known is None and key not in self.seen:
            known = self.seen[key] = _signs(*key)
        return known

    def still_holds(self) -> bool:
        return all(_signs(*key) == signs for key, signs in self.seen.items())

    def is_settled(self, now: int) -> bool:
        """Whether another change would surely show."""
        signs = (signs for signs in self.seen.values() if signs is not None)
        return self.is_whole and all(max(one[3:5], default=0) < now - RACE for one in signs)


def file_system_time() -> int:
    """Now in nanoseconds, by the clock that says when a file was changed."""
    with tempfile.TemporaryFile() as file:
        return os.fstat(file.fileno()).st_mtime_ns


class KeyCache:
    """Keys that were found, each for as long as its footprint holds."""

    def __init__(self, *, now: Callable[[], int] = file_system_time, most: int = MOST_KEYS) -> None:
        self._now = now
        self._most = most
        self._known: OrderedDict[bytes, tuple[CacheInputs, str]] = OrderedDict()

    def find(self, asked: bytes, make: Callable[[CacheInputs], str]) -> str:
        """The key of what is asked: known, or made anew from what lies there now.

        What is asked may hold values that nobody should keep, so only its digest is kept.
        """
        name = hashlib.sha256(asked).digest()
        footprint, key = self._known.get(name, (None, ""))
        if footprint is not None and footprint.still_holds():
            self._known.move_to_end(name)
            return key
        footprint = CacheInputs()
        key = make(footprint)
        self._known.pop(name, None)
        if footprint.is_settled(self._now()):
            self._known[name] = (footprint, key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return key


def is_link(signs: StatFields) -> bool:
    """Whether a path that was looked at as a link is one."""
    return signs is not None and stat.S_ISLNK(signs[2])


def _signs(path: str, look: StatLevel) -> StatFields:
    """Device, number and kind; where the content counts, also times and size."""
    try:
        seen = os.stat(path, follow_symlinks=look is not StatLevel.LINK)  # noqa: PTH116  (it is hot)
    except (OSError, ValueError):
        return None
    which = seen.st_dev, seen.st_ino, seen.st_mode
    if look is StatLevel.PLACE or (look is StatLevel.LINK and stat.S_ISDIR(seen.st_mode)):
        return which
    return *which, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size
