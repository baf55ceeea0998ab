"""Unpacking of untrusted archives: nothing is written outside the directory, and sizes are limited.

Reads gzipped and plain tar, and zip. An invalid entry raises an error with its name.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from tidegate.errors import Location, SourceError, sanitize
from tidegate.files import PathEscapeError, PathViolation, archive_entry_path
from tidegate.source.tree import MIB, TreeLimits, check_links, walk_tree

CHUNK = 64 * 1024
SMALL = 16 * MIB
"""Up to this size the compression ratio is not checked: short texts compress very well."""
LARGEST_HEADER = MIB
LARGEST_LINK = 4096


class Readable(Protocol):
    """Anything with `read`, such as a file or an archive member."""

    def read(self, size: int, /) -> bytes: ...


class Unpacker:
    """State of unpacking one archive into one directory."""

    def __init__(self, target: Path, *, name: str, limits: TreeLimits, strip: int) -> None:
        self._target = target
        self._name = name
        self._limits = limits
        self._strip = strip
        self._links: dict[PurePosixPath, str] = {}
        self._entries = 0
        self._written_bytes = 0

    def target_path(self, entry: str) -> PurePosixPath | None:
        """Return the target path of an entry; None for a directory that `strip` removes."""
        self._entries += 1
        if self._entries > self._limits.files:
            raise self.entry_error(entry, f"exceeds the limit of {self._limits.files} entries")
        try:
            path = PurePosixPath(*archive_entry_path(entry).parts[self._strip :])
        except PathEscapeError as error:
            is_outside = error.violation is PathViolation.OUTSIDE
            reason = "points outside the archive" if is_outside else "has an invalid path"
            raise self.entry_error(entry, reason) from None
        # The files in `.git` are not part of a tree.
        return path if path.parts and ".git" not in path.parts else None

    def add_file(self, entry: str, content: Readable, *, executable: bool) -> None:
        """Write the file of an entry."""
        target = self.target_path(entry)
        if target is None:
            return
        path = self._prepare_path(entry, target)
        with path.open("xb") as file:
            self._copy(entry, content, file)
        path.chmod(0o755 if executable else 0o644)

    def add_directory(self, entry: str) -> None:
        """Create the directory of an entry."""
        target = self.target_path(entry)
        if target is not None:
            self._make_directory(entry, target)

    def add_link(self, entry: str, link_target: str) -> None:
        """Remember a link. Links are created last, so that nothing is written through them."""
        target = self.target_path(entry)
        if target is not None:
            self._prepare_path(entry, target)
            self._links[target] = link_target

    def add_copy(self, entry: str, original: str) -> None:
        """Write a tar hard link as a copy of the original."""
        target = self.target_path(original)
        original_path = self._target / target if target else None
        if target in self._links or original_path is None or not original_path.is_file():
            raise self.entry_error(entry, "is a link to an entry that is not in the archive")
        with original_path.open("rb") as content:
            self.add_file(entry, content, executable=os.access(original_path, os.X_OK))

    def finish(self) -> None:
        """Create the links, and raise if one leads out of the directory."""
        for target, link_target in self._links.items():
            path = self._target / target
            if path.is_dir():
                raise self.entry_error(str(target), "is both a link and a directory")
            path.symlink_to(link_target)
        check_links(self._target, walk_tree(self._target), self._name)

    def entry_error(self, entry: str, reason: str) -> SourceError:
        """Return the error for an invalid entry."""
        problem = f"the entry `{sanitize(entry)}` {reason}"
        return SourceError("source.archive.entry", problem, location=Location(self._name))

    def _prepare_path(self, entry: str, target: PurePosixPath) -> Path:
        self._make_directory(entry, target.parent)
        path = self._target / target
        if path.is_dir():
            raise self.entry_error(entry, "is both a file and a directory")
        self._links.pop(target, None)
        path.unlink(missing_ok=True)  # of two entries with one name, the last counts
        return path

    def _make_directory(self, entry: str, target: PurePosixPath) -> None:
        if target in self._links or any(parent in self._links for parent in target.parents):
            raise self.entry_error(entry, "is below a link")
        try:
            (self._target / target).mkdir(parents=True, exist_ok=True)
        except OSError:
            raise self.entry_error(entry, "has a path that cannot be created") from None

    def _copy(self, entry: str, content: Readable, file: IO[bytes]) -> None:
        size = 0
        while chunk := content.read(CHUNK):
            size += len(chunk)
            self._written_bytes += len(chunk)
            if size > self._limits.file_size:
                raise self.entry_error(entry, f"is larger than {self._limits.file_size // MIB} MiB")
            if self._written_bytes > self._limits.tree_size:
                raise size_error(self._name, self._limits.tree_size)
            file.write(chunk)


def unpack(
    archive: Path, target: Path, *, name: str, limits: TreeLimits | None = None, strip: int = 0
) -> None:
    """Unpack an archive into an existing, empty directory.

    `name` names the archive in errors. `strip` is the number of leading directories to remove.
    """
    limits = limits or TreeLimits()
    unpacker = Unpacker(target, name=name, limits=limits, strip=strip)
    unpack_errors = (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
    )
    try:
        with archive.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start.startswith(b"PK"):
                _unpack_zip(unpacker, file, limits=limits, name=name)
            else:
                is_gzipped = start.startswith(b"\x1f\x8b")
                with _open_tar(file, is_gzipped=is_gzipped, limits=limits, name=name) as tar:
                    _unpack_tar(unpacker, tar)
        unpacker.finish()
    except (*unpack_errors, NotImplementedError, RuntimeError) as error:
        problem = "cannot unpack the archive: " + sanitize(str(error) or "it is truncated")
        raise SourceError("source.archive.broken", problem, location=Location(name)) from error


def size_error(name: str, limit: int) -> SourceError:
    """Return the error for an archive that unpacks to more than the limit."""
    problem = f"its content exceeds {limit // MIB} MiB or its compression ratio is suspicious"
    return SourceError("source.archive.size", problem, location=Location(name))


@contextmanager
def _open_tar(
    file: IO[bytes], *, is_gzipped: bool, limits: TreeLimits, name: str
) -> Iterator[IO[bytes]]:
    """Yield the uncompressed tar as a file on disk: seeking back in a gzip stream is slow."""
    if not is_gzipped:
        yield file
        return
    limit = _unpacked_limit(os.fstat(file.fileno()).st_size, limits)
    with tempfile.TemporaryFile() as plain, gzip.open(file) as stream:
        while chunk := stream.read(CHUNK):
            plain.write(chunk)
            if plain.tell() > limit:
                raise size_error(name, limit)
        plain.seek(0)
        yield plain


def _unpacked_limit(archive_size: int, limits: TreeLimits) -> int:
    # A tar has a header block for each file.
    return min(limits.tree_size + limits.files * 1024, max(SMALL, archive_size * limits.ratio))


class _BoundedReader(io.RawIOBase):
    """Reader that rejects large reads: `tarfile` reads as much as a header claims."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= LARGEST_HEADER:
            raise ValueError("a header is too large")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _unpack_tar(unpacker: Unpacker, file: IO[bytes]) -> None:
    with tarfile.open(fileobj=_BoundedReader(file), mode="r:") as tar:
        for member in tar:
            vars(tar)["members"].clear()  # `tarfile` would keep every member
            if member.isreg() and (content := tar.extractfile(member)) is not None:
                unpacker.add_file(member.name, content, executable=bool(member.mode & stat.S_IXUSR))
            elif member.isdir():
                unpacker.add_directory(member.name)
            elif member.issym():
                unpacker.add_link(member.name, member.linkname)
            elif member.islnk():
                unpacker.add_copy(member.name, member.linkname)
            else:
                raise unpacker.entry_error(member.name, "is neither a file, a directory nor a link")


def _unpack_zip(unpacker: Unpacker, file: IO[bytes], *, limits: TreeLimits, name: str) -> None:
    limit = _unpacked_limit(os.fstat(file.fileno()).st_size, limits)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > limit:
            raise size_error(name, limit)
        for member in members:
            _add_zip_member(unpacker, archive, member)


def _add_zip_member(unpacker: Unpacker, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    mode = member.external_attr >> 16
    if member.is_dir():
        unpacker.add_directory(member.filename)
        return
    with archive.open(member) as content:
        if stat.S_ISLNK(mode):
            target = content.read(LARGEST_LINK).decode("utf-8", "replace")
            unpacker.add_link(member.filename, target)
        else:
            unpacker.add_file(member.filename, content, executable=bool(mode & stat.S_IXUSR))
