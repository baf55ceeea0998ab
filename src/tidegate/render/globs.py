"""Files that match a pattern, as Argo CD finds value files: `envs/*.yaml`, `envs/**/values.yaml`.

`**` matches any number of directories, and does not follow links. Files of a directory come
before those further down, and names are sorted.

Like `getResolvedValueFiles` and `isGlobPath` in `reposerver/repository/repository.go` of Argo CD
3.5.6, and `FilepathGlob` in `utils.go` of bmatcuk/doublestar 4.10.0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tidegate.files import PathEscapeError, normalize_path, resolve_within
from tidegate.globs import compile_name_glob, expand_braces

WILDCARDS = frozenset("*?[")
ANY_DEPTH = "**"
MAX_DIRECTORIES = 20_000


def is_pattern(text: str) -> bool:
    """Return whether a text has a wildcard. Braces alone make no pattern."""
    return not WILDCARDS.isdisjoint(text)


def find_matches(root: Path, pattern: str) -> list[str]:
    """Return the paths below a directory that match a pattern.

    Raises ValueError if the pattern is invalid or leads out of the directory.
    """
    paths: dict[str, None] = {}
    for text in expand_braces(pattern):
        names = [name for name in normalize_path(text.lstrip("/") or ".").split("/") if name != "."]
        for path in _expand_segments(root, [""], names):
            paths.setdefault(path)
    return [*paths]


def _expand_segments(root: Path, paths: list[str], names: list[str]) -> Iterator[str]:
    """Yield the paths that match, segment by segment of the pattern."""
    for number, name in enumerate(names):
        is_last = number == len(names) - 1
        if name == ANY_DEPTH:
            paths = [deeper for path in paths for deeper in _directories(root, path)]
            if is_last:
                paths += [
                    file
                    for path in paths
                    for file in _matching_names(root, path, compile_name_glob("*"))
                ]
        elif is_pattern(name):
            glob = compile_name_glob(name)
            paths = [child for path in paths for child in _matching_names(root, path, glob)]
        else:
            unescaped = name.replace("\\", "")
            paths = [
                f"{path}{unescaped}/" for path in paths if os.path.lexists(root / path / unescaped)
            ]
        if len(paths) > MAX_DIRECTORIES:
            raise ValueError("it matches too many paths")
    yield from (path.rstrip("/") for path in paths)


def _matching_names(root: Path, path: str, glob: re.Pattern[str]) -> Iterator[str]:
    return (f"{path}{name}/" for name in _names(root, path) if glob.fullmatch(name))


def _directories(root: Path, path: str) -> Iterator[str]:
    """Yield a directory and all below it, parents first."""
    pending = [path]
    count = 0
    while pending:
        current = pending.pop()
        count += 1
        if count > MAX_DIRECTORIES:
            raise ValueError("it searches too many directories")
        yield current
        paths = [root / current / name for name in _names(root, current)]
        subdirectories = [path.name for path in paths if path.is_dir() and not path.is_symlink()]
        pending += [f"{current}{name}/" for name in reversed(subdirectories)]


def _names(root: Path, path: str) -> list[str]:
    try:
        directory = resolve_within(root / path, root)
        return sorted((child.name for child in directory.iterdir()), key=os.fsencode)
    except (OSError, PathEscapeError):
        return []
