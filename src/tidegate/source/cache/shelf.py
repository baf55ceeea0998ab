"""Texts by their names: small files, replaced in one step; the last one counts."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tidegate.source.cache.holding import CacheItem, Kept, listed, unusable


class Shelf:
    """One directory of texts. A name can be anything; only its hash is on disk."""

    def __init__(self, place: Path, *, making: Path, kind: Kept) -> None:
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
            raise unusable(self._place, error) from error

    def recall(self, name: str) -> bytes | None:
        path = self._path(name)
        try:
            os.utime(path)
            return path.read_bytes()
        except OSError:
            return None

    def items(self) -> Iterator[CacheItem]:
        for path in listed(self._place):
            with suppress(OSError):
                seen = path.stat()
                yield CacheItem(seen.st_mtime_ns, path, seen.st_size, self._kind)

    def remove(self, item: CacheItem) -> bool:
        """Whether it is gone. Nobody reads a text for longer than it takes to read it."""
        try:
            item.path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _path(self, name: str) -> Path:
        return self._place / hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
