"""Paths that must stay inside an untrusted file tree.

A path is first normalized as text (`normalize_path`), then resolved through its links
(`resolve_within`). Both raise a `PathEscapeError` with a reason; the caller words the message.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import IO

from tidegate.errors import FileError, Location


class PathViolation(Enum):
    """Why a path is rejected."""

    INVALID = "is not a path"
    ABSOLUTE = "is an absolute path"
    OUTSIDE = "is outside the allowed directory"
    LINK_LOOP = "contains links that point to each other"


VIOLATIONS_BY_ERRNO = {
    errno.ELOOP: PathViolation.LINK_LOOP,
    errno.ENAMETOOLONG: PathViolation.INVALID,
}
"""Path violations by the errno that the system returns for them."""


USER_FILE_LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes of a file that a user names."""


class PathEscapeError(ValueError):
    """A path that is invalid, or that leaves its tree."""

    def __init__(self, violation: PathViolation) -> None:
        super().__init__(violation.value)
        self.violation = violation


class IrregularFileError(OSError):
    """A device, pipe, socket or directory in place of a regular file."""


def normalize_path(path: str, start: str = ".") -> str:
    """Normalize a path, relative to `start`, to the shortest path from the root of the tree.

    Links are not resolved: `a/..` is `.`, even if `a` is a link. Raises PathEscapeError.
    """
    if not path or "\0" in path:
        raise PathEscapeError(PathViolation.INVALID)
    if path.startswith("/"):
        raise PathEscapeError(PathViolation.ABSOLUTE)
    joined = posixpath.normpath(posixpath.join(start, path))
    if joined == ".." or joined.startswith("../"):
        raise PathEscapeError(PathViolation.OUTSIDE)
    return joined


def archive_entry_path(entry: str) -> PurePosixPath:
    """Return the target path of an archive entry. Raises PathEscapeError.

    An entry with `..` is rejected: below a link, it could lead anywhere.
    """
    if "\\" in entry:
        raise PathEscapeError(PathViolation.INVALID)
    if ".." in entry.split("/"):
        raise PathEscapeError(PathViolation.OUTSIDE)
    return PurePosixPath(normalize_path(entry))


def resolve_within(path: Path, root: Path) -> Path:
    """Resolve all links of a path, which must stay inside `root`. Raises PathEscapeError.

    The result need not exist.
    """
    try:
        os.stat(path)  # noqa: PTH116  (it is hot, and only the system itself finds every cycle of links)
    except ValueError:
        raise PathEscapeError(PathViolation.INVALID) from None
    except OSError as error:
        if error.errno in VIOLATIONS_BY_ERRNO:
            raise PathEscapeError(VIOLATIONS_BY_ERRNO[error.errno]) from None
    resolved, resolved_root = os.path.realpath(path), os.path.realpath(root)
    if resolved != resolved_root and not resolved.startswith(resolved_root.rstrip("/") + "/"):
        raise PathEscapeError(PathViolation.OUTSIDE)
    return Path(resolved)


def open_file(path: Path | str) -> IO[bytes]:
    """Open a resolved path if it is a regular file. Raises OSError."""
    # The path may have become a link or a pipe meanwhile; reading a pipe may never end.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise IrregularFileError(errno.EINVAL, "it is not a regular file")


def _read_start(path: str, limit: int) -> bytes:
    """Read up to `limit` bytes of a resolved path, if it is a regular file. Raises OSError.

    Thousands of small files are read like this: a stream would ask the system twice as much, and
    allocate the limit.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise IrregularFileError(errno.EINVAL, "it is not a regular file")
        content = os.read(handle, min(status.st_size + 1, limit))
        while len(content) < limit and (more := os.read(handle, limit - len(content))):
            content += more  # a large file, or one that grows
        return content
    finally:
        os.close(handle)


def read_regular_file(path: Path | str, limit: int = USER_FILE_LIMIT) -> bytes:
    """Read a file that a user names, through its links. Raises OSError.

    Pipes and devices are rejected, because they may never end; so are files above the limit.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise IrregularFileError(errno.EINVAL, "it is not a regular file")
        return read_bounded(file, limit)


def read_bounded(stream: IO[bytes], limit: int = USER_FILE_LIMIT) -> bytes:
    """Read a stream to its end. Raises OSError if it is larger than the limit."""
    content = stream.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit // 1024**2} MiB")
    return content


def read_user_file(path: Path) -> bytes:
    """Read a file that was written for Tidegate. Raises FileError."""
    try:
        return read_regular_file(path)
    except OSError as error:
        problem = f"cannot read the file: {error.strerror}"
        hint = "use a regular, readable file"
        raise FileError(
            "file.unreadable", problem, location=Location(str(path)), hint=hint
        ) from None


class RootedFiles:
    """Many files below one root, with each directory resolved once.

    Up to `kept_size` bytes of contents are kept: a file that was read whole is not read again.
    """

    def __init__(self, root: Path, kept_size: int = 0) -> None:
        self.root = root
        self._directories = {"": os.path.realpath(root)}
        self._kept: dict[str, bytes] = {}
        self._free_size = kept_size

    def read(self, name: str, limit: int) -> bytes:
        """Read up to `limit` bytes of a file by its normalized path, through all links.

        Raises OSError and PathEscapeError.
        """
        content = self._kept.get(name)
        if content is not None:
            return content[:limit]
        directory, _, file_name = name.rpartition("/")
        try:
            content = _read_start(f"{self._resolve_directory(directory)}/{file_name}", limit)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            content = _read_start(str(resolve_within(self.root / name, self.root)), limit)
        if len(content) < min(limit, self._free_size):
            self._kept[name] = content
            self._free_size -= len(content)
        return content

    def kept(self, name: str) -> bytes | None:
        """Return the content of a file if it is kept."""
        return self._kept.get(name)

    def list_directory(self, path: str) -> list[str]:
        """List the names in a directory. Raises OSError and PathEscapeError."""
        directory = normalize_path(path)
        return os.listdir(self._resolve_directory("" if directory == "." else directory))  # noqa: PTH208  (it is hot)

    def resolve_directory(self, path: str) -> str:
        """Resolve all links of a directory. The result need not exist. Raises PathEscapeError."""
        if "\0" in path or path.startswith("/") or ".." in path.split("/"):
            return str(
                resolve_within(self.root / path, self.root)
            )  # after a link, `..` leads elsewhere
        directory = posixpath.normpath(path)
        return self._resolve_directory("" if directory == "." else directory)

    def _resolve_directory(self, directory: str) -> str:
        resolved = self._directories.get(directory)
        if resolved is None:
            parent, _, name = directory.rpartition("/")
            resolved = f"{self._resolve_directory(parent)}/{name}"
            if os.path.islink(resolved):  # noqa: PTH114  (it is hot)
                resolved = str(resolve_within(self.root / directory, self.root))
            self._directories[directory] = resolved
        return resolved
