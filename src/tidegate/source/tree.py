"""Trees of files: their entries, links that lead out of them, and a digest of the content."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.files import PathEscapeError, PathViolation, resolve_within

MIB = 1024 * 1024
CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


class TreeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the size of a tree, an archive or a download."""

    files: int = 100_000
    """Maximum number of files."""
    file_size: int = 256 * MIB
    """Maximum bytes of a file."""
    tree_size: int = 1024 * MIB
    """Maximum bytes of all files."""
    download: int = 256 * MIB
    """Maximum bytes of a download."""
    ratio: int = 200
    """How much larger than its archive a tree may be; applies above 16 MiB."""


class TreeEntry(msgspec.Struct, frozen=True, order=True):
    """One file or link of a tree."""

    path: str
    """The path in the tree."""
    target: str = ""
    """Target of a link; empty for a file."""
    executable: bool = False
    """Whether the file is executable."""
    size: int = 0
    """The size in bytes."""

    @property
    def is_link(self) -> bool:
        """Whether the entry is a link."""
        return bool(self.target)


def walk_tree(root: Path) -> list[TreeEntry]:
    """Return every file and link below `root`, sorted, without `.git`."""
    return sorted(_walk(root, ""))


def read_entries(root: Path, paths: Iterable[str]) -> list[TreeEntry]:
    """Return the entries of these paths that exist."""
    entries = (_entry(f"{root}/{path}", path) for path in paths)
    return sorted(entry for entry in entries if entry)


def split_escaping_links(
    root: Path, entries: Iterable[TreeEntry]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths that can be read as files, and the links that lead out of the tree."""
    files, escaping = [], []
    for entry in entries:
        if not entry.is_link:
            files.append(entry.path)
            continue
        try:
            if _link_end(entry, root).is_file():
                files.append(entry.path)
        except PathEscapeError as error:
            if error.violation is PathViolation.OUTSIDE:
                escaping.append(entry.path)
    return tuple(files), tuple(escaping)


def check_links(root: Path, entries: Iterable[TreeEntry], name: str) -> tuple[str, ...]:
    """Return the files of an untrusted tree.

    Raises SourceError if a link points outside the tree.
    """
    files, escaping = split_escaping_links(root, entries)
    if escaping:
        raise SourceError(
            "source.link",
            f"the link `{sanitize(escaping[0])}` points outside its source",
            location=Location(name),
            hint="point it to a file in the same source, or remove it",
        )
    return files


def digest_entries(root: Path, entries: Iterable[TreeEntry]) -> str:
    """Return a digest of paths, contents, links and executable bits; equal on every machine."""
    digest = hashlib.sha256()
    for entry in sorted(entries):
        if entry.is_link:
            kind, content = b"l", hashlib.sha256(os.fsencode(entry.target)).digest()
        else:
            kind, content = (b"x" if entry.executable else b"f"), _digest_file(root / entry.path)
        path = os.fsencode(entry.path)
        digest.update(kind + len(path).to_bytes(4, "big") + path + content)
    return f"sha256:{digest.hexdigest()}"


def tree_size(entries: Iterable[TreeEntry]) -> int:
    """Return the bytes of all files."""
    return sum(entry.size for entry in entries)


def _walk(directory: Path, prefix: str) -> Iterator[TreeEntry]:
    pending = [(directory, prefix)]
    while pending:
        current, parent = pending.pop()
        for child in _list_directory(current):
            if child.name == ".git":
                continue
            path = parent + child.name
            if child.is_dir(follow_symlinks=False):
                pending.append((Path(child.path), path + "/"))
            elif entry := _entry(child.path, path):
                yield entry


def _list_directory(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError as error:
        raise _read_error(directory, error) from None


def _read_error(path: Path, error: OSError) -> SourceError:
    """Return the error for a file that is not readable, or was removed meanwhile."""
    problem = f"cannot be read: {error.strerror}"
    return SourceError("source.local", problem, location=Location(str(path)))


def _entry(full_path: str, path: str) -> TreeEntry | None:
    """Return the entry of a path; None for sockets, pipes, devices, and if it does not exist."""
    try:
        status = os.lstat(full_path)
        if stat.S_ISLNK(status.st_mode):
            return TreeEntry(path, target=os.readlink(full_path))  # noqa: PTH115  (a Path would normalize it)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return TreeEntry(path, executable=bool(status.st_mode & stat.S_IXUSR), size=status.st_size)


def _link_end(link: TreeEntry, root: Path) -> Path:
    # An absolute target is invalid even if it is inside: the tree may be moved.
    if link.target.startswith(os.sep):
        raise PathEscapeError(PathViolation.OUTSIDE)
    return resolve_within(root / link.path, root)


def _digest_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise _read_error(path, error) from None


def check_digest(actual: str, expected_digest: str, name: str) -> None:
    """Raise SourceError if a digest is not the expected one. None may be expected."""
    expected = expected_digest.rpartition(":")[2].lower()
    if expected and expected != actual.rpartition(":")[2]:
        problem = f"its digest is `{actual}`, expected `{sanitize(expected_digest)}`"
        raise SourceError("source.digest", problem, location=Location(name))


def check_chart(directory: Path, name: str) -> None:
    """Raise SourceError if a directory is no chart."""
    if not (directory / "Chart.yaml").is_file():
        problem = "it has no `Chart.yaml`"
        raise SourceError("source.chart.archive", problem, location=Location(name))
