"""Scratch directories for secret files: in memory on Linux, accessible only to the user.

A directory is removed at the end of its block. If a process was killed, the next process removes
it: its lock is free then.
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

MEMORY = Path("/dev/shm")  # noqa: S108  (Linux keeps it in memory)
PREFIX = "tidegate-scratch-"


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Create a directory that only this user can enter; it is removed at the end of the block."""
    base = _base_directory()
    _remove_leftovers_once(base)
    path, lock = _make_locked(base)
    try:
        yield path
    finally:
        shutil.rmtree(path)
        os.close(lock)


def remove_leftovers(base: Path) -> None:
    """Remove the directories of killed processes."""
    for path in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)


def _base_directory() -> Path:
    has_memory = sys.platform == "linux" and os.access(MEMORY, os.W_OK | os.X_OK)
    return (MEMORY if has_memory else Path(tempfile.gettempdir())).resolve()


_remove_leftovers_once = cache(remove_leftovers)


def _make_locked(base: Path) -> tuple[Path, int]:
    """Create a directory and lock it; try again if another process removed it before the lock."""
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
