"""Paths that must stay inside a tree of files that somebody else made.

A path is text first (`tidy`), and then it is followed through its links (`follow`). Either refuses
with a reason, and who asked says it in the words of what was asked.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import IO

from tidegate.errors import FileError, Place


class Stray(Enum):
    """Why a path cannot be taken."""

    NO_PATH = "is no path"
    ABSOLUTE = "is an absolute path"
    OUTSIDE = "leads out"
    CIRCLE = "goes through links that lead in a circle"


REFUSALS = {errno.ELOOP: Stray.CIRCLE, errno.ENAMETOOLONG: Stray.NO_PATH}
"""What the system says of a path that leads nowhere, not even to nothing."""


OWN_LIMIT = 64 * 1024 * 1024
"""Bytes of a file that a user names."""


class StrayPathError(ValueError):
    """A path cannot be taken."""

    def __init__(self, why: Stray) -> None:
        super().__init__(why.value)
        self.why = why


class IrregularFileError(OSError):
    """A device, a pipe, a socket or a directory, where a file should be."""


def tidy(path: str, start: str = ".") -> str:
    """A path, seen from `start`, as the shortest text from the root of the tree on.

    Links are not looked at: `a/..` is nothing, whatever `a` is.
    """
    if not path or "\0" in path:
        raise StrayPathError(Stray.NO_PATH)
    if path.startswith("/"):
        raise StrayPathError(Stray.ABSOLUTE)
    joined = posixpath.normpath(posixpath.join(start, path))
    if joined == ".." or joined.startswith("../"):
        raise StrayPathError(Stray.OUTSIDE)
    return joined


def unpacked(entry: str) -> PurePosixPath:
    """Where an entry of an archive goes. It never goes back: from a link that could be anywhere."""
    if "\\" in entry:
        raise StrayPathError(Stray.NO_PATH)
    if ".." in entry.split("/"):
        raise StrayPathError(Stray.OUTSIDE)
    return PurePosixPath(tidy(entry))


def follow(path: Path, root: Path) -> Path:
    """Where a path leads behind all its links, which is inside `root`. It may lead to nothing."""
    try:
        os.stat(path)  # noqa: PTH116  (it is hot, and only the system itself finds every circle)
    except ValueError:
        raise StrayPathError(Stray.NO_PATH) from None
    except OSError as error:
        if error.errno in REFUSALS:
            raise StrayPathError(REFUSALS[error.errno]) from None
    real, top = os.path.realpath(path), os.path.realpath(root)
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        raise StrayPathError(Stray.OUTSIDE)
    return Path(real)


def open_file(path: Path | str) -> IO[bytes]:
    """Open what `follow` has found, if it is a file. Raises OSError."""
    # It may have become a link or a pipe meanwhile, and nobody may ever write to that.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise IrregularFileError(errno.EINVAL, "it is not a regular file")


def read_whole(path: Path | str, limit: int = OWN_LIMIT) -> bytes:
    """What a file holds that somebody names, behind its links. Raises OSError.

    A pipe may never end, nor may a device: neither is read, and of a file no more than the limit.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise IrregularFileError(errno.EINVAL, "it is not a regular file")
        return bounded(file, limit)


def bounded(stream: IO[bytes], limit: int = OWN_LIMIT) -> bytes:
    """All that a stream holds. Raises OSError where that is more than the limit."""
    content = stream.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit // 1024**2} MiB")
    return content


def read_users_file(path: Path) -> bytes:
    """What a file holds that was written for us. Raises FileError."""
    try:
        return read_whole(path)
    except OSError as error:
        problem = f"this file cannot be read: {error.strerror}"
        hint = "name a regular file that you may read"
        raise FileError("file.unreadable", problem, where=Place(str(path)), hint=hint) from None


class Within:
    """Many files of one tree: each directory on the way is looked at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = {"": os.path.realpath(root)}

    def open(self, name: str) -> IO[bytes]:
        """Open a file by its tidy path, behind all links. Raises OSError and StrayPathError."""
        folder, _, last = name.rpartition("/")
        try:
            return open_file(f"{self._folder(folder)}/{last}")
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        return open_file(follow(self._root / name, self._root))

    def names(self, path: str) -> list[str]:
        """What lies in a directory. Raises OSError and StrayPathError."""
        folder = tidy(path)
        return os.listdir(self._folder("" if folder == "." else folder))  # noqa: PTH208  (it is hot)

    def folder(self, path: str) -> str:
        """Where a directory is behind all links. It may lead to nothing. Raises StrayPathError."""
        if "\0" in path or path.startswith("/") or ".." in path.split("/"):
            return str(follow(self._root / path, self._root))  # behind a link, up is elsewhere
        folder = posixpath.normpath(path)
        return self._folder("" if folder == "." else folder)

    def _folder(self, folder: str) -> str:
        known = self._folders.get(folder)
        if known is None:
            above, _, last = folder.rpartition("/")
            known = f"{self._folder(above)}/{last}"
            if os.path.islink(known):  # noqa: PTH114  (it is hot)
                known = str(follow(self._root / folder, self._root))
            self._folders[folder] = known
        return known
