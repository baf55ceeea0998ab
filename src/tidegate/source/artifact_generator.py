"""Trees that are made of parts of others: the only directories that are wanted of one, and files
of several put together as Flux's generator of artifacts puts them.

Patterns are read as that reads them: `*` finds no slash, and `dir/**` finds what lies in `dir`;
what is left out may have `**` for any depth.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tidegate.documents import read_first_value
from tidegate.documents.dump import to_yaml
from tidegate.errors import Location, SourceError, sanitize
from tidegate.files import PathEscapeError, normalize_path
from tidegate.globs import expand_braces
from tidegate.model.k8s.objects import Json
from tidegate.model.units.source import (
    GLOB_CHARACTERS,
    ArtifactCopy,
    CopyStrategy,
    Revision,
    Snapshot,
)
from tidegate.source.artifact_directories import list_parent_directories
from tidegate.source.fetch import copy_files, select_files, with_digest
from tidegate.source.ignore import compile_segment
from tidegate.source.options import FetchOptions
from tidegate.source.tree import walk_tree

ANY_DEPTH = "**"
INSIDE = "/**"
ARCHIVES = (".tar.gz", ".tgz")


async def select_directories(
    snapshot: Snapshot, wanted: Sequence[str], access: FetchOptions, where: Location | None
) -> Snapshot:
    """The tree with these directories alone, each of which must be there."""
    found = TreeIndex(snapshot.files)
    for one in wanted:
        if posixpath.normpath(one) not in found.all:
            problem = f"there is no directory `{sanitize(one)}` in the repository"
            raise SourceError("source.portion", problem, location=where)
    beginnings = tuple(wanted)
    return await select_files(
        snapshot, tuple(file for file in snapshot.files if file.startswith(beginnings)), access
    )


async def compose_artifact(
    own: Snapshot | None, portions: Sequence[tuple[ArtifactCopy, Snapshot]], access: FetchOptions
) -> Snapshot:
    """One tree with the files of `own`, and over them those of the portions, in their order.

    It goes by the revision of `own`; where there is none, by that of what is in it.
    """
    if own is not None:
        own = await with_digest(own)
    whole = [(one, await with_digest(tree)) for one, tree in portions]
    first = own or whole[0][1]
    digest = hashlib.sha256(msgspec.json.encode([own.digest if own else "", *map(_key, whole)]))

    async def fill(place: Path) -> None:
        await asyncio.to_thread(_fill, own, whole, place)

    name = f"together {digest.hexdigest()}"
    tree = await access.cache.find_or_keep(name, fill, shown=str(first.source))
    return msgspec.structs.replace(
        first,
        revision=own.revision if own else Revision("latest", tree.digest),
        root=tree.root,
        files=tree.files,
        escaping_links=(),
        digest=tree.digest,
        original_root=(own.original_root or own.root) if own else None,
    )


def _key(part: tuple[ArtifactCopy, Snapshot]) -> tuple[str, ...]:
    portion, tree = part
    return (tree.digest, portion.pattern, portion.destination, portion.strategy, *portion.excludes)


class TreeIndex:
    """The files of a tree, and the directories that they lie in."""

    def __init__(self, files: Iterable[str]) -> None:
        self.files = tuple(files)
        self.directories = {".", *list_parent_directories(self.files)}
        self.all = frozenset(self.files) | self.directories

    def below(self, folder: str) -> Iterator[str]:
        start = "" if folder == "." else f"{folder}/"
        return (file for file in self.files if file.startswith(start))


def _fill(
    own: Snapshot | None, parts: Iterable[tuple[ArtifactCopy, Snapshot]], place: Path
) -> None:
    if own is not None:
        copy_files(own.root, own.files, place)
    for portion, tree in parts:
        if portion.strategy is CopyStrategy.EXTRACT:
            for archive in _archives(portion, TreeIndex(tree.files)):
                _extract(portion, tree.root / archive, place)
            continue
        for file, into in _taken(portion, TreeIndex(tree.files), place):
            _put_at(portion, tree.root / file, place, into)


def _put_at(portion: ArtifactCopy, file: Path, place: Path, into: str) -> None:
    try:
        _put(file, place / normalize_path(into), merges=portion.strategy is CopyStrategy.MERGE)
    except (PathEscapeError, FileExistsError, IsADirectoryError, NotADirectoryError):
        raise _refused(portion, f"`{sanitize(into)}` is no place for a file") from None


def _extract(portion: ArtifactCopy, archive: Path, place: Path) -> None:
    """Over what is there; links of an archive are what they lead to."""
    from tidegate.source.archive import unpack  # noqa: PLC0415 - few sources are archives

    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        unpacked = Path(folder)
        unpack(archive, unpacked, name=archive.name)
        for entry in walk_tree(unpacked):
            into = posixpath.join(portion.destination, entry.path)
            _put_at(portion, unpacked / entry.path, place, into)


def _archives(portion: ArtifactCopy, entries: TreeIndex) -> Iterator[str]:
    """The archives that are meant; of what a pattern finds, all else is passed over."""
    path = posixpath.normpath(portion.pattern or ".")
    if GLOB_CHARACTERS.isdisjoint(portion.pattern):
        _must_be_there(portion, path, entries)
        if path in entries.directories or not path.lower().endswith(ARCHIVES):
            raise _refused(portion, f"`{sanitize(path)}` is no archive: {' or '.join(ARCHIVES)}")
        yield from () if _sparing(portion, ".")(path) else (path,)
        return
    patterns = [one.split("/") for one in _braces(portion.pattern)]
    fitting = [
        one
        for one in sorted(entries.all - {"."})
        if any(_fits(pattern, one.split("/")) for pattern in patterns)
    ]
    spared = _sparing(portion, portion.base_directory)
    kept = [one for one in fitting if not spared(one)]
    if not kept:
        raise _nothing_taken(portion, is_spared=bool(fitting))
    yield from (one for one in kept if one in entries.files and one.lower().endswith(ARCHIVES))


def _put(file: Path, target: Path, *, merges: bool) -> None:
    """Of a link, what it leads to: in another tree it would lead elsewhere."""
    if merges and target.is_file():
        _merge(file, target)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copy2(file, target)


def _merge(file: Path, target: Path) -> None:
    over, under = (read_first_value(one.read_bytes(), one.name) for one in (file, target))
    target.unlink()
    target.write_text(to_yaml(_merged(under, over)))


def _merged(under: Json, over: Json) -> Json:
    """Mappings are merged; of all else the last word counts."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    both = {name: _merged(under[name], one) for name, one in over.items() if name in under}
    return {**under, **over, **both}


def _taken(portion: ArtifactCopy, entries: TreeIndex, place: Path) -> Iterator[tuple[str, str]]:
    """Which files are taken, and where each goes."""
    pattern = posixpath.normpath(portion.pattern or ".")
    if portion.strategy is CopyStrategy.DIRECTORY:
        return _whole(portion, pattern, entries, place)
    if GLOB_CHARACTERS.isdisjoint(portion.pattern):
        return _named(portion, pattern, entries, place)
    return _found(portion, entries)


def _whole(
    portion: ArtifactCopy, path: str, entries: TreeIndex, place: Path
) -> Iterator[tuple[str, str]]:
    _must_be_there(portion, path, entries)
    target = place / portion.destination
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise _refused(portion, f"there is something at `{sanitize(portion.destination)}` already")
    if path in entries.directories:
        for file in entries.below(path):
            yield file, posixpath.join(portion.destination, posixpath.relpath(file, path))
    else:
        yield path, portion.destination


def _named(
    portion: ArtifactCopy, path: str, entries: TreeIndex, place: Path
) -> Iterator[tuple[str, str]]:
    """A directory goes into the target under its own name, as `cp -r` has it; so does a file where
    the target is a directory."""
    _must_be_there(portion, path, entries)
    if path in entries.directories:
        spared = _sparing(portion, path)
        into = posixpath.join(portion.destination, posixpath.basename(path))
        for file in entries.below(path):
            if not spared(file):
                yield file, posixpath.join(into, posixpath.relpath(file, path))
        return
    if not _sparing(portion, ".")(path):
        is_folder = portion.destination in {"", "."} or portion.destination.endswith("/")
        folder = is_folder or (place / portion.destination).is_dir()
        last = posixpath.basename(path)
        yield path, posixpath.join(portion.destination, last) if folder else portion.destination


def _found(portion: ArtifactCopy, entries: TreeIndex) -> Iterator[tuple[str, str]]:
    shapes = [compile_segment(one) for one in portion.pattern.split("/")]
    depth = len(shapes)
    if None in shapes:
        raise _refused(portion, f"`{sanitize(portion.pattern)}` is no pattern")
    matches = sorted(
        one
        for one in entries.all - {"."}
        if one.count("/") + 1 == depth
        and all(
            shape and shape.fullmatch(part)
            for shape, part in zip(shapes, one.split("/"), strict=True)
        )
    )
    spared = _sparing(portion, portion.base_directory)
    kept = [one for one in matches if not spared(one)]
    if not kept:
        raise _nothing_taken(portion, is_spared=bool(matches))
    strip = portion.pattern.removesuffix(INSIDE) if portion.pattern.endswith(INSIDE) else ""
    for match in kept:
        files = entries.below(match) if match in entries.directories else (match,)
        for file in files:
            if file == match or not spared(file):
                short = file.removeprefix(f"{strip}/") if strip else file
                yield file, posixpath.join(portion.destination, short)


def _sparing(portion: ArtifactCopy, base: str) -> Callable[[str], bool]:
    """Whether a path is left out, or a directory that it lies in; seen from the root or `base`."""
    patterns = [
        (one.split("/"), "/" not in said) for said in portion.excludes for one in _braces(said)
    ]

    def fits(path: str) -> bool:
        parts = path.split("/")
        return any(
            _fits(pattern, parts) or (is_name and _fits(pattern, parts[-1:]))
            for pattern, is_name in patterns
        )

    def spared(path: str) -> bool:
        while path and path not in {".", base}:
            inside = posixpath.relpath(path, base) if path.startswith(f"{base}/") else path
            if fits(path) or fits(inside):
                return True
            path = posixpath.dirname(path)
        return False

    return spared if patterns else lambda _: False


def _braces(pattern: str) -> list[str]:
    try:
        return expand_braces(pattern)
    except ValueError:
        return [pattern]


def _fits(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """`**` stands for any number of directories, and for none."""
    at = {0}
    for part in [*path, None]:
        for place in range(len(pattern)):
            if place in at and pattern[place] == ANY_DEPTH:
                at.add(place + 1)
        if part is None:
            return len(pattern) in at
        at = {
            place if pattern[place] == ANY_DEPTH else place + 1
            for place in at
            if place < len(pattern)
            and (pattern[place] == ANY_DEPTH or _fits_name(pattern[place], part))
        }
    return False


def _fits_name(pattern: str, name: str) -> bool:
    shape = compile_segment(pattern)
    return shape is not None and shape.fullmatch(name) is not None


def _must_be_there(portion: ArtifactCopy, path: str, entries: TreeIndex) -> None:
    if path not in entries.all:
        raise _refused(portion, f"there is no `{sanitize(portion.pattern)}` in its tree")


def _nothing_taken(portion: ArtifactCopy, *, is_spared: bool) -> SourceError:
    reason = "all that fits it is left out" if is_spared else "nothing fits it"
    return _refused(portion, f"of `{sanitize(portion.pattern)}` nothing is taken: {reason}")


def _refused(portion: ArtifactCopy, why: str) -> SourceError:
    problem = f"files of `{portion.source}` cannot be put into it: {why}"
    return SourceError("source.portion", problem, location=portion.location)
