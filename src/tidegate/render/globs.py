"""Find files by a pattern, as Argo CD finds value files: `envs/*.yaml`, `envs/**/values.yaml`.

`**` stands for any number of directories, and does not follow links. Of what is found, files of a
directory come before those further down, and names in their order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tidegate.files import PathEscapeError, normalize_path, resolve_within
from tidegate.globs import compile_name_glob, expand_braces

META = frozenset("*?[")
ANY_DEPTH = "**"
MOST_DIRECTORIES = 20_000


def is_pattern(text: str) -> bool:
    """Braces alone make no pattern."""
    return not META.isdisjoint(text)


def find_matches(root: Path, pattern: str) -> list[str]:
    """Paths below a directory that fit. Raises ValueError for what is no pattern or leads out."""
    found: dict[str, None] = {}
    for text in expand_braces(pattern):
        names = [name for name in normalize_path(text.lstrip("/") or ".").split("/") if name != "."]
        for path in _matching(root, [""], names):
            found.setdefault(path)
    return [*found]


def _matching(root: Path, below: list[str], names: list[str]) -> Iterator[str]:
    """What fits, name by name of the pattern."""
    for number, name in enumerate(names):
        is_last = number == len(names) - 1
        if name == ANY_DEPTH:
            below = [deeper for path in below for deeper in _directories(root, path)]
            if is_last:
                below += [
                    file for path in below for file in _named(root, path, compile_name_glob("*"))
                ]
        elif is_pattern(name):
            glob = compile_name_glob(name)
            below = [found for path in below for found in _named(root, path, glob)]
        else:
            plain = name.replace("\\", "")
            below = [f"{path}{plain}/" for path in below if os.path.lexists(root / path / plain)]
        if len(below) > MOST_DIRECTORIES:
            raise ValueError("it fits too many paths")
    yield from (path.rstrip("/") for path in below)


def _named(root: Path, path: str, glob: re.Pattern[str]) -> Iterator[str]:
    return (f"{path}{name}/" for name in _names(root, path) if glob.fullmatch(name))


def _directories(root: Path, path: str) -> Iterator[str]:
    """A directory and all below it, each before what it holds."""
    waiting = [path]
    seen = 0
    while waiting:
        here = waiting.pop()
        seen += 1
        if seen > MOST_DIRECTORIES:
            raise ValueError("it reaches too many directories")
        yield here
        paths = [root / here / name for name in _names(root, here)]
        inner = [path.name for path in paths if path.is_dir() and not path.is_symlink()]
        waiting += [f"{here}{name}/" for name in reversed(inner)]


def _names(root: Path, path: str) -> list[str]:
    try:
        directory = resolve_within(root / path, root)
        return sorted((one.name for one in directory.iterdir()), key=os.fsencode)
    except (OSError, PathEscapeError):
        return []
