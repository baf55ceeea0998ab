"""Look at a tree of files: what is in it, what leads out of it, and one digest for all of it."""

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
    """How large a tree, an archive or an answer may be."""

    files: int = 100_000
    file_size: int = 256 * MIB
    tree_size: int = 1024 * MIB
    download: int = 256 * MIB
    ratio: int = 200
    """How much larger than its archive a tree may be, once it is larger than 16 MiB."""


class TreeEntry(msgspec.Struct, frozen=True, order=True):
    """One file or link of a tree."""

    path: str
    target: str = ""
    executable: bool = False
    size: int = 0

    @property
    def is_link(self) -> bool:
        return bool(self.target)


def walk_tree(root: Path) -> list[TreeEntry]:
    """Every file and link below `root`, sorted; Git's own directory is not part of a tree."""
    return sorted(_walk(root, ""))


def read_entries(root: Path, paths: Iterable[str]) -> list[TreeEntry]:
    """The entries of these paths, as far as they are there."""
    found = (_entry(f"{root}/{path}", path) for path in paths)
    return sorted(entry for entry in found if entry)


def split_escaping_links(
    root: Path, entries: Iterable[TreeEntry]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which entries can be read as files, and which are links that lead out of the tree."""
    files, escaping = [], []
    for entry in entries:
        if not entry.is_link:
            files.append(entry.path)
            continue
        try:
            if _end_of(entry, root).is_file():
                files.append(entry.path)
        except PathEscapeError as stray:
            if stray.violation is PathViolation.OUTSIDE:
                escaping.append(entry.path)
    return tuple(files), tuple(escaping)


def check_links(root: Path, entries: Iterable[TreeEntry], name: str) -> tuple[str, ...]:
    """The files of a tree that somebody else made; a link out of it is an error."""
    files, escaping = split_escaping_links(root, entries)
    if escaping:
        raise SourceError(
            "source.link",
            f"the link `{sanitize(escaping[0])}` leads out of its source",
            location=Location(name),
            hint="make it point to a file in the same source, or remove it",
        )
    return files


def digest_entries(root: Path, entries: Iterable[TreeEntry]) -> str:
    """The same for the same paths, contents, links and executable bits, on every machine."""
    whole = hashlib.sha256()
    for entry in sorted(entries):
        if entry.is_link:
            kind, content = b"l", hashlib.sha256(os.fsencode(entry.target)).digest()
        else:
            kind, content = (b"x" if entry.executable else b"f"), _digest_file(root / entry.path)
        path = os.fsencode(entry.path)
        whole.update(kind + len(path).to_bytes(4, "big") + path + content)
    return f"sha256:{whole.hexdigest()}"


def tree_size(entries: Iterable[TreeEntry]) -> int:
    return sum(entry.size for entry in entries)


def _walk(directory: Path, prefix: str) -> Iterator[TreeEntry]:
    pending = [(directory, prefix)]
    while pending:
        folder, above = pending.pop()
        for item in _listed(folder):
            if item.name == ".git":
                continue
            path = above + item.name
            if item.is_dir(follow_symlinks=False):
                pending.append((Path(item.path), path + "/"))
            elif entry := _entry(item.path, path):
                yield entry


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listed:
            return list(listed)
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: Path, error: OSError) -> SourceError:
    """What nobody lets us read, or what has gone since it was listed."""
    problem = f"it cannot be read: {error.strerror}"
    return SourceError("source.local", problem, location=Location(str(path)))


def _entry(place: str, path: str) -> TreeEntry | None:
    """Nothing for what is gone, and for sockets, pipes and devices."""
    try:
        seen = os.lstat(place)
        if stat.S_ISLNK(seen.st_mode):
            return TreeEntry(path, target=os.readlink(place))  # noqa: PTH115  (a Path tidies it)
    except OSError:
        return None
    if not stat.S_ISREG(seen.st_mode):
        return None
    return TreeEntry(path, executable=bool(seen.st_mode & stat.S_IXUSR), size=seen.st_size)


def _end_of(link: TreeEntry, root: Path) -> Path:
    # An absolute target is wrong even where it points inside: the tree may be moved.
    if link.target.startswith(os.sep):
        raise PathEscapeError(PathViolation.OUTSIDE)
    return resolve_within(root / link.path, root)


def _digest_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise _unreadable(path, error) from None


def check_digest(found: str, wanted: str, name: str) -> None:
    """Refuse what is not what was promised. An index may promise nothing."""
    expected = wanted.rpartition(":")[2].lower()
    if expected and expected != found.rpartition(":")[2]:
        problem = f"its digest is `{found}`, and should be `{sanitize(wanted)}`"
        raise SourceError("source.digest", problem, location=Location(name))


def check_chart(place: Path, name: str) -> None:
    if not (place / "Chart.yaml").is_file():
        problem = "there is no `Chart.yaml` in it"
        raise SourceError("source.chart.archive", problem, location=Location(name))
