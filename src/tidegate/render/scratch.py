"""A directory for what must not stay: in memory where the system can, for our eyes only.

It is gone with whoever made it. Only a kill leaves one behind, and then the next process removes
it: a lock that nobody holds any more tells.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108  (the one place Linux keeps in memory for everyone)
PREFIX = "tidegate-scratch-"


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A new directory that nobody else may enter, and that is gone afterwards with all in it."""
    base = _base()
    _tidy_once(base)
    path, lock = _make(base)
    try:
        yield path
    finally:
        shutil.rmtree(path)
        os.close(lock)


def remove_leftovers(base: Path) -> None:
    """Remove what processes that were killed have left."""
    for path in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)


def _base() -> Path:
    is_memory = sys.platform == "linux" and os.access(MEMORY, os.W_OK | os.X_OK)
    return (MEMORY if is_memory else Path(tempfile.gettempdir())).resolve()


_tidy_once = cache(remove_leftovers)


def _make(base: Path) -> tuple[Path, int]:
    """Made and held. Somebody who tidies may be quicker: then once more."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if path.exists():
                return path, lock
        except BlockingIOError:
            pass
        os.close(lock)
