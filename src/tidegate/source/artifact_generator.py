"""Trees of parts of other trees, also as a Flux ArtifactGenerator creates them.

Patterns work as in the ArtifactGenerator: `*` matches no slash, and `dir/**` matches what is in
`dir`. In excludes, `**` matches any depth.
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
    snapshot: Snapshot, directories: Sequence[str], options: FetchOptions, location: Location | None
) -> Snapshot:
    """Return the tree with these directories only.

    Raises SourceError if one is missing.
    """
    index = TreeIndex(snapshot.files)
    for directory in directories:
        if posixpath.normpath(directory) not in index.all:
            problem = f"directory `{sanitize(directory)}` not found in the repository"
            raise SourceError("source.copy", problem, location=location)
    prefixes = tuple(directories)
    return await select_files(
        snapshot, tuple(file for file in snapshot.files if file.startswith(prefixes)), options
    )


async def compose_artifact(
    base: Snapshot | None, copies: Sequence[tuple[ArtifactCopy, Snapshot]], options: FetchOptions
) -> Snapshot:
    """Return one tree: the files of `base`, and over them the copies, in their order.

    The revision is the one of `base`; without one, the digest of the content.

    Like `Build` and `applyCopyOperations` in `internal/builder/builder.go` of source-watcher 2.2.2.
    """
    if base is not None:
        base = await with_digest(base)
    sources = [(artifact_copy, await with_digest(tree)) for artifact_copy, tree in copies]
    first = base or sources[0][1]
    digest = hashlib.sha256(msgspec.json.encode([base.digest if base else "", *map(_key, sources)]))

    async def fill(directory: Path) -> None:
        await asyncio.to_thread(_fill, base, sources, directory)

    name = f"together {digest.hexdigest()}"
    tree = await options.cache.find_or_store(name, fill, source_name=str(first.source))
    return msgspec.structs.replace(
        first,
        revision=base.revision if base else Revision("latest", tree.digest),
        root=tree.root,
        files=tree.files,
        escaping_links=(),
        digest=tree.digest,
        original_root=(base.original_root or base.root) if base else None,
    )


def _key(source: tuple[ArtifactCopy, Snapshot]) -> tuple[str, ...]:
    """Return the parts of the cache name that describe one copy."""
    artifact_copy, tree = source
    return (
        tree.digest,
        artifact_copy.pattern,
        artifact_copy.destination,
        artifact_copy.strategy,
        *artifact_copy.excludes,
    )


class TreeIndex:
    """The files of a tree and the directories that contain them."""

    def __init__(self, files: Iterable[str]) -> None:
        self.files = tuple(files)
        self.directories = {".", *list_parent_directories(self.files)}
        self.all = frozenset(self.files) | self.directories

    def below(self, directory: str) -> Iterator[str]:
        """Return the files below a directory."""
        prefix = "" if directory == "." else f"{directory}/"
        return (file for file in self.files if file.startswith(prefix))


def _fill(
    base: Snapshot | None, sources: Iterable[tuple[ArtifactCopy, Snapshot]], directory: Path
) -> None:
    if base is not None:
        copy_files(base.root, base.files, directory)
    for artifact_copy, tree in sources:
        if artifact_copy.strategy is CopyStrategy.EXTRACT:
            for archive in _archives(artifact_copy, TreeIndex(tree.files)):
                _extract(artifact_copy, tree.root / archive, directory)
            continue
        for file, path in _select_files(artifact_copy, TreeIndex(tree.files), directory):
            _copy_to(artifact_copy, tree.root / file, directory, path)


def _copy_to(artifact_copy: ArtifactCopy, file: Path, directory: Path, path: str) -> None:
    try:
        _copy_file(
            file,
            directory / normalize_path(path),
            should_merge=artifact_copy.strategy is CopyStrategy.MERGE,
        )
    except (PathEscapeError, FileExistsError, IsADirectoryError, NotADirectoryError):
        raise _copy_error(
            artifact_copy, f"`{sanitize(path)}` is not a valid path for a file"
        ) from None


def _extract(artifact_copy: ArtifactCopy, archive: Path, directory: Path) -> None:
    """Unpack an archive over the existing files; its links become copies of their targets.

    Like `extractTarball` in `internal/builder/extract.go` of source-watcher 2.2.2.
    """
    from tidegate.source.archive import unpack  # noqa: PLC0415 - few sources are archives

    with tempfile.TemporaryDirectory(prefix="tidegate-") as scratch:
        unpacked = Path(scratch)
        unpack(archive, unpacked, name=archive.name)
        for entry in walk_tree(unpacked):
            path = posixpath.join(artifact_copy.destination, entry.path)
            _copy_to(artifact_copy, unpacked / entry.path, directory, path)


def _archives(artifact_copy: ArtifactCopy, entries: TreeIndex) -> Iterator[str]:
    """Yield the archives that a copy names; other files that match a pattern are ignored."""
    path = posixpath.normpath(artifact_copy.pattern or ".")
    if GLOB_CHARACTERS.isdisjoint(artifact_copy.pattern):
        _require_path(artifact_copy, path, entries)
        if path in entries.directories or not path.lower().endswith(ARCHIVES):
            raise _copy_error(
                artifact_copy, f"`{sanitize(path)}` is not an archive: {' or '.join(ARCHIVES)}"
            )
        yield from () if _exclude_filter(artifact_copy, ".")(path) else (path,)
        return
    patterns = [pattern.split("/") for pattern in _expand_braces(artifact_copy.pattern)]
    matches = [
        path
        for path in sorted(entries.all - {"."})
        if any(_matches(pattern, path.split("/")) for pattern in patterns)
    ]
    is_excluded = _exclude_filter(artifact_copy, artifact_copy.base_directory)
    selected = [path for path in matches if not is_excluded(path)]
    if not selected:
        raise _empty_selection_error(artifact_copy, is_excluded=bool(matches))
    yield from (
        path for path in selected if path in entries.files and path.lower().endswith(ARCHIVES)
    )


def _copy_file(file: Path, target: Path, *, should_merge: bool) -> None:
    """Copy a file. A link becomes a copy of its target: in another tree it would lead elsewhere."""
    if should_merge and target.is_file():
        _merge(file, target)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copy2(file, target)


def _merge(file: Path, target: Path) -> None:
    upper, lower = (read_first_value(path.read_bytes(), path.name) for path in (file, target))
    target.unlink()
    target.write_text(to_yaml(_merged(lower, upper)))


def _merged(lower: Json, upper: Json) -> Json:
    """Return merged mappings; anything else of `upper` replaces the value of `lower`.

    Like `mergeMap` in `internal/builder/merge.go` of source-watcher 2.2.2.
    """
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return upper
    merged = {name: _merged(lower[name], value) for name, value in upper.items() if name in lower}
    return {**lower, **upper, **merged}


def _select_files(
    artifact_copy: ArtifactCopy, entries: TreeIndex, directory: Path
) -> Iterator[tuple[str, str]]:
    """Yield the selected files, each with its target path."""
    pattern = posixpath.normpath(artifact_copy.pattern or ".")
    if artifact_copy.strategy is CopyStrategy.DIRECTORY:
        return _select_whole(artifact_copy, pattern, entries, directory)
    if GLOB_CHARACTERS.isdisjoint(artifact_copy.pattern):
        return _select_path(artifact_copy, pattern, entries, directory)
    return _select_pattern(artifact_copy, entries)


def _select_whole(
    artifact_copy: ArtifactCopy, path: str, entries: TreeIndex, directory: Path
) -> Iterator[tuple[str, str]]:
    """Yield the files of a directory for the `Directory` strategy; the target must be empty."""
    _require_path(artifact_copy, path, entries)
    target = directory / artifact_copy.destination
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise _copy_error(artifact_copy, f"`{sanitize(artifact_copy.destination)}` already exists")
    if path in entries.directories:
        for file in entries.below(path):
            yield file, posixpath.join(artifact_copy.destination, posixpath.relpath(file, path))
    else:
        yield path, artifact_copy.destination


def _select_path(
    artifact_copy: ArtifactCopy, path: str, entries: TreeIndex, directory: Path
) -> Iterator[tuple[str, str]]:
    """Yield the files of a path without a pattern.

    As with `cp -r`, a directory is copied into the target under its own name; so is a file if the
    target is a directory.

    Like `applySingleSourceCopy` in `internal/builder/builder.go` of source-watcher 2.2.2.
    """
    _require_path(artifact_copy, path, entries)
    if path in entries.directories:
        is_excluded = _exclude_filter(artifact_copy, path)
        target = posixpath.join(artifact_copy.destination, posixpath.basename(path))
        for file in entries.below(path):
            if not is_excluded(file):
                yield file, posixpath.join(target, posixpath.relpath(file, path))
        return
    if not _exclude_filter(artifact_copy, ".")(path):
        names_directory = artifact_copy.destination in {
            "",
            ".",
        } or artifact_copy.destination.endswith("/")
        is_directory = names_directory or (directory / artifact_copy.destination).is_dir()
        name = posixpath.basename(path)
        yield (
            path,
            posixpath.join(artifact_copy.destination, name)
            if is_directory
            else artifact_copy.destination,
        )


def _select_pattern(artifact_copy: ArtifactCopy, entries: TreeIndex) -> Iterator[tuple[str, str]]:
    """Yield the files that match a pattern.

    Like `getGlobMatchingEntries` and `calculateGlobDestination` in `internal/builder/builder.go` of
    source-watcher 2.2.2.
    """
    segments = [compile_segment(name) for name in artifact_copy.pattern.split("/")]
    depth = len(segments)
    if None in segments:
        raise _copy_error(
            artifact_copy, f"`{sanitize(artifact_copy.pattern)}` is not a valid pattern"
        )
    matches = sorted(
        path
        for path in entries.all - {"."}
        if path.count("/") + 1 == depth
        and all(
            segment and segment.fullmatch(part)
            for segment, part in zip(segments, path.split("/"), strict=True)
        )
    )
    is_excluded = _exclude_filter(artifact_copy, artifact_copy.base_directory)
    selected = [path for path in matches if not is_excluded(path)]
    if not selected:
        raise _empty_selection_error(artifact_copy, is_excluded=bool(matches))
    strip = (
        artifact_copy.pattern.removesuffix(INSIDE) if artifact_copy.pattern.endswith(INSIDE) else ""
    )
    for match in selected:
        files = entries.below(match) if match in entries.directories else (match,)
        for file in files:
            if file == match or not is_excluded(file):
                relative_path = file.removeprefix(f"{strip}/") if strip else file
                yield file, posixpath.join(artifact_copy.destination, relative_path)


def _exclude_filter(artifact_copy: ArtifactCopy, base: str) -> Callable[[str], bool]:
    """Return a function that returns whether a path, or a directory above it, is excluded.

    Patterns match from the root or from `base`.

    Like `shouldExcludePath` in `internal/builder/builder.go` of source-watcher 2.2.2.
    """
    patterns = [
        (pattern.split("/"), "/" not in exclude)
        for exclude in artifact_copy.excludes
        for pattern in _expand_braces(exclude)
    ]

    def matches_any(path: str) -> bool:
        parts = path.split("/")
        return any(
            _matches(pattern, parts) or (is_name and _matches(pattern, parts[-1:]))
            for pattern, is_name in patterns
        )

    def is_excluded(path: str) -> bool:
        while path and path not in {".", base}:
            relative_path = posixpath.relpath(path, base) if path.startswith(f"{base}/") else path
            if matches_any(path) or matches_any(relative_path):
                return True
            path = posixpath.dirname(path)
        return False

    return is_excluded if patterns else lambda _: False


def _expand_braces(pattern: str) -> list[str]:
    try:
        return expand_braces(pattern)
    except ValueError:
        return [pattern]


def _matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Return whether a path matches; `**` matches any number of directories, also none."""
    positions = {0}
    for part in [*path, None]:
        for position in range(len(pattern)):
            if position in positions and pattern[position] == ANY_DEPTH:
                positions.add(position + 1)
        if part is None:
            return len(pattern) in positions
        positions = {
            position if pattern[position] == ANY_DEPTH else position + 1
            for position in positions
            if position < len(pattern)
            and (pattern[position] == ANY_DEPTH or _matches_name(pattern[position], part))
        }
    return False


def _matches_name(pattern: str, name: str) -> bool:
    regex = compile_segment(pattern)
    return regex is not None and regex.fullmatch(name) is not None


def _require_path(artifact_copy: ArtifactCopy, path: str, entries: TreeIndex) -> None:
    if path not in entries.all:
        raise _copy_error(
            artifact_copy, f"`{sanitize(artifact_copy.pattern)}` not found in the source"
        )


def _empty_selection_error(artifact_copy: ArtifactCopy, *, is_excluded: bool) -> SourceError:
    reason = "all matches are excluded" if is_excluded else "no match"
    return _copy_error(
        artifact_copy, f"`{sanitize(artifact_copy.pattern)}` copies nothing: {reason}"
    )


def _copy_error(artifact_copy: ArtifactCopy, reason: str) -> SourceError:
    problem = f"cannot copy files of `{artifact_copy.source}`: {reason}"
    return SourceError("source.copy", problem, location=artifact_copy.location)
