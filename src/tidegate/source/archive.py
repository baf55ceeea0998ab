"""Unpack an archive that a stranger made: nothing leaves the directory, nothing grows for ever.

Gzipped and plain tar, and zip. An entry that is wrong ends the work with its name.
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
"""Up to here the ratio does not count: a little text compresses very well."""
LARGEST_HEADER = MIB
LARGEST_LINK = 4096


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Unpacker:
    """One archive on its way into one directory."""

    def __init__(self, target: Path, *, name: str, limits: TreeLimits, strip: int) -> None:
        self._target = target
        self._name = name
        self._limits = limits
        self._strip = strip
        self._links: dict[PurePosixPath, str] = {}
        self._entries = 0
        self._written = 0

    def place_of(self, entry: str) -> PurePosixPath | None:
        """Where an entry goes; nothing for what `strip` takes away."""
        self._entries += 1
        if self._entries > self._limits.files:
            raise self.refused(entry, f"is one of more than {self._limits.files}")
        try:
            inside = PurePosixPath(*archive_entry_path(entry).parts[self._strip :])
        except PathEscapeError as stray:
            out = stray.violation is PathViolation.OUTSIDE
            reason = "leads out of" if out else "has no path that could be inside"
            raise self.refused(entry, f"{reason} the archive") from None
        # What Git keeps for itself is no part of a tree, and nobody looks into it later.
        return inside if inside.parts and ".git" not in inside.parts else None

    def add_file(self, entry: str, content: Readable, *, executable: bool) -> None:
        place = self.place_of(entry)
        if place is None:
            return
        path = self._free_place(entry, place)
        with path.open("xb") as file:
            self._copy(entry, content, file)
        path.chmod(0o755 if executable else 0o644)

    def add_directory(self, entry: str) -> None:
        place = self.place_of(entry)
        if place is not None:
            self._make_directory(entry, place)

    def add_link(self, entry: str, target: str) -> None:
        """Links are made last: nothing can be written through them."""
        place = self.place_of(entry)
        if place is not None:
            self._free_place(entry, place)
            self._links[place] = target

    def add_copy(self, entry: str, original: str) -> None:
        """What tar calls a hard link: the same content once more."""
        source = self.place_of(original)
        known = self._target / source if source else None
        if source in self._links or known is None or not known.is_file():
            raise self.refused(entry, "is a link to what is not in the archive")
        with known.open("rb") as content:
            self.add_file(entry, content, executable=os.access(known, os.X_OK))

    def finish(self) -> None:
        for place, target in self._links.items():
            path = self._target / place
            if path.is_dir():
                raise self.refused(str(place), "is a link and a directory")
            path.symlink_to(target)
        check_links(self._target, walk_tree(self._target), self._name)

    def refused(self, entry: str, reason: str) -> SourceError:
        problem = f"the entry `{sanitize(entry)}` {reason}"
        return SourceError("source.archive.entry", problem, location=Location(self._name))

    def _free_place(self, entry: str, place: PurePosixPath) -> Path:
        self._make_directory(entry, place.parent)
        path = self._target / place
        if path.is_dir():
            raise self.refused(entry, "is a file and a directory")
        self._links.pop(place, None)
        path.unlink(missing_ok=True)  # of two entries with one name, the last counts
        return path

    def _make_directory(self, entry: str, place: PurePosixPath) -> None:
        if place in self._links or any(above in self._links for above in place.parents):
            raise self.refused(entry, "lies behind a link")
        try:
            (self._target / place).mkdir(parents=True, exist_ok=True)
        except OSError:
            raise self.refused(entry, "has a path that cannot be made") from None

    def _copy(self, entry: str, content: Readable, file: IO[bytes]) -> None:
        size = 0
        while piece := content.read(CHUNK):
            size += len(piece)
            self._written += len(piece)
            if size > self._limits.file_size:
                raise self.refused(entry, f"is larger than {self._limits.file_size // MIB} MiB")
            if self._written > self._limits.tree_size:
                raise size_error(self._name, self._limits.tree_size)
            file.write(piece)


def unpack(
    archive: Path, target: Path, *, name: str, limits: TreeLimits | None = None, strip: int = 0
) -> None:
    """Unpack into a directory that is there and empty.

    `name` is how errors call the archive. `strip` takes that many leading directories away.
    """
    limits = limits or TreeLimits()
    work = Unpacker(target, name=name, limits=limits, strip=strip)
    broken = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError)
    try:
        with archive.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start.startswith(b"PK"):
                _unpack_zip(work, file, limits=limits, name=name)
            else:
                zipped = start.startswith(b"\x1f\x8b")
                with _plain(file, zipped=zipped, limits=limits, name=name) as tar:
                    _unpack_tar(work, tar)
        work.finish()
    except (*broken, NotImplementedError, RuntimeError) as error:
        problem = "the archive cannot be unpacked: " + sanitize(str(error) or "it ends too early")
        raise SourceError("source.archive.broken", problem, location=Location(name)) from error


def size_error(name: str, limit: int) -> SourceError:
    problem = f"what is in it is larger than {limit // MIB} MiB, or suspiciously well compressed"
    return SourceError("source.archive.size", problem, location=Location(name))


@contextmanager
def _plain(file: IO[bytes], *, zipped: bool, limits: TreeLimits, name: str) -> Iterator[IO[bytes]]:
    """The tar itself, on disk: a stream would be unzipped anew for each step back."""
    if not zipped:
        yield file
        return
    room = _room(os.fstat(file.fileno()).st_size, limits)
    with tempfile.TemporaryFile() as plain, gzip.open(file) as stream:
        while piece := stream.read(CHUNK):
            plain.write(piece)
            if plain.tell() > room:
                raise size_error(name, room)
        plain.seek(0)
        yield plain


def _room(packed: int, limits: TreeLimits) -> int:
    # A tar has a block for each file beside the content.
    return min(limits.tree_size + limits.files * 1024, max(SMALL, packed * limits.ratio))


class _Sips(io.RawIOBase):
    """Reads a little at a time: a header may claim any size, and tarfile would believe it."""

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


def _unpack_tar(work: Unpacker, file: IO[bytes]) -> None:
    with tarfile.open(fileobj=_Sips(file), mode="r:") as tar:
        for member in tar:
            vars(tar)["members"].clear()  # it would remember every one of them
            if member.isreg() and (content := tar.extractfile(member)) is not None:
                work.add_file(member.name, content, executable=bool(member.mode & stat.S_IXUSR))
            elif member.isdir():
                work.add_directory(member.name)
            elif member.issym():
                work.add_link(member.name, member.linkname)
            elif member.islnk():
                work.add_copy(member.name, member.linkname)
            else:
                raise work.refused(member.name, "is neither a file, a directory nor a link")


def _unpack_zip(work: Unpacker, file: IO[bytes], *, limits: TreeLimits, name: str) -> None:
    room = _room(os.fstat(file.fileno()).st_size, limits)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > room:
            raise size_error(name, room)
        for member in members:
            _add_zipped(work, archive, member)


def _add_zipped(work: Unpacker, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    mode = member.external_attr >> 16
    if member.is_dir():
        work.add_directory(member.filename)
        return
    with archive.open(member) as content:
        if stat.S_ISLNK(mode):
            target = content.read(LARGEST_LINK).decode("utf-8", "replace")
            work.add_link(member.filename, target)
        else:
            work.add_file(member.filename, content, executable=bool(mode & stat.S_IXUSR))
