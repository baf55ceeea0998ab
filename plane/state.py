"""Directories of running control planes: in memory, unreadable for other users, deleted afterwards.

A plane that is tied to its starter holds a lock on its directory. When the starter is killed the
system releases the lock, and the next start of a plane deletes the rest.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plane.errors import PlaneError
from tidegate.errors import Location

KEEP = "TIDEGATE_PLANE_KEEP"
_MEMORY = Path("/dev/shm")  # noqa: S108  # its contents are checked before use
_TIED = "run-"
_DETACHED = "up-"
_KEPT = "kept-"


class StateDirectory:
    """The directory of one plane, and the lock that shows that the plane is running."""

    def __init__(self, path: Path, *, lock: int | None) -> None:
        self.path = path
        self.is_tied = lock is not None
        self._lock = lock

    def discard(self) -> None:
        """Delete it, or keep it if the developer asked for that."""
        if os.environ.get(KEEP) and self.path.is_dir():
            self.path.rename(self.path.with_name(_KEPT + self.path.name))
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def state_root() -> Path:
    """Our directory on a memory file system, or with temporary files where there is none."""
    is_usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK | os.X_OK)
    parent = _MEMORY if is_usable else Path(tempfile.gettempdir())
    root = parent / f"tidegate-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    # The parent is open to everyone, so another user may have created the directory first.
    result = root.lstat()
    is_ours = stat.S_ISDIR(result.st_mode) and result.st_uid == os.getuid()
    if not is_ours or stat.S_IMODE(result.st_mode) & 0o077:
        raise PlaneError(
            "plane.state",
            "the directory for running control planes is not yours alone",
            location=Location(str(root)),
            hint="remove it, or ask its owner to",
        )
    return root


def claim_state(root: Path, *, is_tied: bool) -> StateDirectory:
    """A new directory, after deleting those of planes that died."""
    with _alone(root):
        _sweep(root)
        prefix = _TIED if is_tied else _DETACHED
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        return StateDirectory(path, lock=_try_lock(path) if is_tied else None)


def _sweep(root: Path) -> None:
    for path in root.glob(f"{_TIED}*"):
        lock = _try_lock(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _try_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Block cleanups between the creation of a directory and its lock."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
