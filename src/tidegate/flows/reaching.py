"""How far an overlay, a chart or a cluster's directory reaches that lies in no repository.

That is as far as the bases that it names, or the paths of its units.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tidegate.documents import read
from tidegate.errors import TidegateError
from tidegate.files import read_users_file
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mappings, text
from tidegate.model.release import LOCAL
from tidegate.render.kustomize.tree import KUSTOMIZATION_NAMES

CHART = "Chart.yaml"
FLUX = "kustomize.toolkit.fluxcd.io/"
TEXTS = (".yaml", ".yml")
NAMING = ("resources", "bases", "components")
MOST = 100
"""Directories that are looked into, and files that are read."""


def reach_of(path: Path) -> Path:
    """The least directory that holds a path and all the directories that it is built from.

    One that is not there counts: that it is missing is said of it, and not that it is too far away.
    """
    checkout = _checkout_of(path)
    seen: dict[Path, None] = dict.fromkeys((path, checkout) if checkout else (path,))
    waiting = [path]
    while waiting and len(seen) < MOST:
        for one in _named_by(waiting.pop()):
            if one not in seen and not one.is_file():
                seen[one] = None
                waiting.append(one)
    common = Path(os.path.commonpath(seen))
    return path if common == Path(common.anchor) else common


def _checkout_of(path: Path) -> Path | None:
    """The nearest directory above in which most paths lie that units of Flux's name below."""
    named = {one for file in islice(_texts_below(path), MOST) for one in _paths_in(file)}
    for folder in (path, *path.parents)[:-1] if named else ():
        if 2 * sum((folder / one).is_dir() for one in named) >= len(named):
            return folder
    return None


def _texts_below(path: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        names = (Path(folder, one) for one in sorted(files) if one.endswith(TEXTS))
        yield from names


def _paths_in(file: Path) -> Iterator[str]:
    for body in _read(file):
        if text(body, "apiVersion").startswith(FLUX) and text(body, "kind") == "Kustomization":
            said = os.path.normpath(text(body, "spec", "path", default=".").lstrip("/"))
            if said != "." and not said.startswith(".."):
                yield said


def _named_by(folder: Path) -> Iterator[Path]:
    """The directories that a kustomization or a chart names, as they are written."""
    for name in KUSTOMIZATION_NAMES:
        for body in _read(folder / name):
            words = (word for key in NAMING for word in listed(body, key))
            yield from (_beside(folder, word) for word in words if isinstance(word, str))
    for body in _read(folder / CHART):
        addresses = (text(one, "repository") for one in mappings(body, "dependencies"))
        local = (one.removeprefix(LOCAL) for one in addresses if one.startswith(LOCAL))
        yield from (_beside(folder, one) for one in local)


def _beside(folder: Path, word: str) -> Path:
    return Path(os.path.normpath(folder / word))


def _read(file: Path) -> list[Json]:
    """What stands in a file; whoever renders it says what is wrong with it."""
    if not file.is_file():
        return []
    try:
        return [document.body for document in read(read_users_file(file), file.name)]
    except TidegateError:
        return []
